# _entropipe_offer WORDS: those that begin with $cur.
_entropipe_offer() {
  local word
  for word in $1; do
    case $word in "$cur"*) COMPREPLY+=("$word") ;; esac
  done
}

# _entropipe_offer_list WORDS: $cur with its last element completed, each word once.
_entropipe_offer_list() {
  local word before=''
  case $cur in *,*) before=${cur%,*}, ;; esac
  for word in $1; do
    case ,$before in *,"$word",*) continue ;; esac
    case $before$word in "$cur"*) COMPREPLY+=("$before$word") ;; esac
  done
  compopt -o nospace 2>/dev/null # a comma may follow
}

# _entropipe_offer_value KIND WORDS. File names are the business of readline, which knows
# their quotes; the options of complete -F lead there when nothing is offered.
_entropipe_offer_value() {
  case $1 in
  file) compopt -o default 2>/dev/null ;;
  folder) compopt -o dirnames 2>/dev/null ;;
  list) _entropipe_offer_list "$2" ;;
  choice) _entropipe_offer "$2" ;;
  esac
}

_entropipe() {
  local cur=${COMP_WORDS[COMP_CWORD]} at='' flag='' takes values commands flags argument choices
  local word i ended='' named=''
  COMPREPLY=()
  compopt +o default 2>/dev/null
  # readline takes an equals sign for a word
  if [ "$cur" = = ]; then
    cur=''
    flag=${COMP_WORDS[COMP_CWORD-1]}
  elif [ "$COMP_CWORD" -gt 1 ] && [ "${COMP_WORDS[COMP_CWORD-1]}" = = ]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  fi
  _entropipe_at_ ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [ -n "$ended" ]; then continue; fi
    case $word in
    --) ended=yes ;;
    -*)
      "_entropipe_at_$at" "$word"
      if [ "$takes" = nothing ]; then continue; fi
      if [ "${COMP_WORDS[i+1]}" = = ]; then i=$((i + 1)); fi
      i=$((i + 1))
      if [ "$i" -eq "$COMP_CWORD" ]; then flag=$word; fi
      ;;
    *)
      if [ -n "$named" ]; then continue; fi
      case " $commands " in
      *" $word "*)
        at=${at:+${at}_}${word//-/_}
        "_entropipe_at_$at" ''
        ;;
      *) named=yes ;; # an argument: no command follows
      esac
      ;;
    esac
  done
  if [ -n "$flag" ] && [ -z "$ended" ]; then
    "_entropipe_at_$at" "$flag"
    _entropipe_offer_value "$takes" "$values"
    return
  fi
  case $ended$cur in
  -*) _entropipe_offer "$flags" ;;
  *)
    if [ -z "$named$ended" ]; then _entropipe_offer "$commands"; fi
    _entropipe_offer_value "$argument" "$choices"
    ;;
  esac
}

complete -o bashdefault -o default -F _entropipe entropipe
