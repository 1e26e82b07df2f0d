"""What the Python package tokenizers makes of texts: the reference of this folder's package.

  reference.py train DIR [KIND ...]    writes the small tokenizers of the golden tests, or those named
  reference.py encode TOKENIZER < TEXTS  one text a line, base64 of bytes; prints [ids, decoded] a line
  reference.py tables                  prints what it holds of every code point
  reference.py properties NAME ...     prints the code points of each \\p{NAME}, as firsts and lasts
  reference.py speed TOKENIZER TEXT N  encodes a file's lines N times; prints the least seconds
"""
import base64, json, os, sys, time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS,
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS,
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
# No scanner knows these: classes, their complements, scripts, and letters of either case.
CLASSES = [r"(?i:'[sdmtk]|'ll|'ve|'re)", r"\p{Lu}?[\p{Ll}\p{Mn}]+|\p{Lt}+|[^\S\n]+", r"\p{Han}|[\p{Cyrillic}\p{Greek}]{1,4}|\d{1,2}|[\P{L}\p{Lo}]"]
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

# Sentences of our own, so that the golden files are ours.
CORPUS = """
The lighthouse keeper counted the waves, and when the waves were counted he counted the stars.
She wouldn't say where they'd gone; we've looked, I'm sure he'll look too, and that's all there's to it.
Nothing is lost in a stream that's read twice: the second reading finds what the first had left behind.
In 1987 there were 365 days, 52 weeks, 12 months and 1 winter that lasted until 2003.
A café in Zürich sells naïve coffee; über-strong, crème brûlée and smørrebrød, señor, piñata, façade.
Το φως του φάρου έσβησε. Свет маяка погас, и море стало тёмным. 灯台の光が消えた。灯塔的光熄灭了。 등대의 불빛이 꺼졌다.
func main() { for i := 0; i < 10; i++ { fmt.Println("hello, world", i*i+1) } } // a comment
The reader reads the reading; the writer writes the writing; the runner runs, running the longest run unrunnable.
Email: someone@example.org, call +49 (30) 123-456, pay $19.99 or €20, about 50% off!? Yes... no -- maybe: "quoted".
    indented by four spaces
\tby a tab\r\n\r\nand two line breaks  with  double  spaces   here    and there
""".strip("\n").split("\n")


def build(kind):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if kind.startswith("wordpiece"):
        lower = kind == "wordpiece"
        t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
        t.normalizer = normalizers.BertNormalizer(lowercase=lower)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece()
        t.train_from_iterator(CORPUS * 3, trainers.WordPieceTrainer(vocab_size=420, special_tokens=special, show_progress=False))
        if lower:
            t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        else:
            t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
            t.add_tokens([AddedToken("Zürich Café", normalized=True), AddedToken("word", single_word=True), AddedToken("left", lstrip=True), AddedToken("right", rstrip=True)])
            t.add_special_tokens([AddedToken("<both>", lstrip=True, rstrip=True, single_word=True, normalized=False)])
        return t
    if kind == "llama2" or kind.startswith("metaspace"):
        t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=kind == "llama2"))
        special = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if kind == "llama2" else [])
        if kind == "llama2":
            t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
            t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        else:
            scheme = {"metaspace": "always", "metaspace-first": "first"}[kind]
            t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=kind == "metaspace")
            t.decoder = decoders.Metaspace(prepend_scheme=scheme)
        train = t.pre_tokenizer
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        norm, t.normalizer = t.normalizer, None
        trainer = trainers.BpeTrainer(vocab_size=len(special) + 330, special_tokens=special, show_progress=False)
        t.train_from_iterator([c for c in CORPUS if "灯" not in c] * 3, trainer)
        s = json.loads(t.to_str())
        s["pre_tokenizer"] = json.loads(train.__getstate__()) if train else None
        t = Tokenizer.from_str(json.dumps(s))
        if norm:
            t.normalizer = norm
        # byte tokens belong to the model, and are not looked for in text
        s = json.loads(t.to_str())
        s["added_tokens"] = [a for a in s["added_tokens"] if not a["content"].startswith("<0x")]
        t = Tokenizer.from_str(json.dumps(s))
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        return t
    t = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    trainer = trainers.BpeTrainer(vocab_size=620, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
                                  special_tokens=["<|endoftext|>"] if kind != "llama3" else ["<|begin_of_text|>", "<|end_of_text|>"])
    t.decoder = decoders.ByteLevel()
    if kind == "qwen2":
        t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    elif kind == "o200k":
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    elif kind == "classes":
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(c), "isolated") for c in CLASSES] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    elif kind.startswith("digits"):
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(kind == "digits"), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    elif kind == "gpt2":
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    elif kind == "roberta":
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(CORPUS * 3, trainer)
    if kind == "llama3":
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])])
    if kind == "qwen2":
        t.add_tokens([AddedToken("cafe\u0301", normalized=True), AddedToken("e\u0301e\u0301", normalized=False)])
    if kind == "roberta":
        t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0), ("<|endoftext|>", 0))
        t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return t


def train(folder, *kinds):
    for kind in kinds or ["wordpiece", "wordpiece-cased", "gpt2", "roberta", "llama3", "qwen2", "o200k", "classes", "digits", "digits-runs", "llama2", "metaspace", "metaspace-first"]:
        with open(os.path.join(folder, kind + ".json"), "w") as f:
            f.write(build(kind).to_str())


def encode(path):
    t = Tokenizer.from_file(path)
    t.no_padding()
    t.no_truncation()
    for line in sys.stdin.buffer:
        ids = t.encode(base64.b64decode(line).decode("utf-8", "replace")).ids
        print(json.dumps([ids, t.decode(ids)]))


def tables():
    """Every code point asked for its properties, through what the reference does with it."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    accents = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    nfd, lower, bert = normalizers.NFD(), normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    match = {name: pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed") for name in "LN"}
    words = Tokenizer(models.WordLevel({"ab": 0}, unk_token="ab"))
    words.add_tokens([AddedToken("zz", single_word=True, normalized=False)])
    found = {name: [] for name in ["control", "marks", "punctuation", "letters", "numbers", "wordSigns", "movable"]}
    lowers = []
    for c in range(0x110000):
        ch = chr(c)
        if 0xD800 <= c < 0xE000:
            continue
        for name, yes in [
            ("control", c not in (0, 0xFFFD) and clean.normalize_str("a" + ch + "b") == "ab"),
            ("marks", nfd.normalize_str(ch) == ch and accents.normalize_str("a" + ch + "b") == "ab"),
            ("punctuation", [w for w, _ in bert.pre_tokenize_str("a" + ch + "b")] == ["a", ch, "b"]),
            ("letters", not match["L"].pre_tokenize_str(ch)),
            ("numbers", not match["N"].pre_tokenize_str(ch)),
            ("wordSigns", words.encode("zz" + ch).ids[0] == 0),
            ("movable", nfd.normalize_str(ch) == ch and nfd.normalize_str("a\u0345" + ch) != "a\u0345" + ch),
        ]:
            if yes:
                found[name].append(c)
        small = lower.normalize_str(ch)
        if small != ch and len(small) == 1:
            lowers.append((c, ord(small)))
    json.dump([found, lowers], sys.stdout)


def properties(*names):
    """The members of each property, asked of all code points at once: only those that are assigned belong to any but C and Cn."""
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    def members(name, of):
        rest = pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed")
        found = []
        for i in range(0, len(of), 1 << 14):
            text = "".join(of[i:i + (1 << 14)])
            left = bytearray(len(text))
            for _, (start, end) in rest.pre_tokenize_str(text):
                left[start:end] = b"\1" * (end - start)
            found += [ch for k, ch in enumerate(text) if not left[k]]
        return found
    unassigned = set(members("Cn", every))
    assigned = [ch for ch in every if ch not in unassigned]
    out = {}
    for name in names:
        ranges = []
        for ch in members(name, every if name in ("C", "Cn") else assigned):
            if ranges and ranges[-1] == ord(ch) - 1:
                ranges[-1] = ord(ch)
            else:
                ranges += [ord(ch), ord(ch)]
        out[name] = ranges
    json.dump(out, sys.stdout)


def speed(path, text, runs):
    """The least time of single calls and of one batch without offsets, both on one thread."""
    t = Tokenizer.from_file(path)
    t.no_padding()
    t.no_truncation()
    paragraphs = open(text, encoding="utf-8", newline="").read().split("\n")
    ways = {"single": lambda: [t.encode(p) for p in paragraphs], "batch": lambda: t.encode_batch_fast(paragraphs)}
    least, tokens = {}, 0
    for _ in range(int(runs)):
        for way, run in ways.items():
            start = time.perf_counter()
            done = run()
            took = time.perf_counter() - start
            least[way] = min(took, least.get(way, took))
            tokens = sum(len(e.ids) for e in done)
    print(json.dumps({"single": least["single"], "batch": least["batch"], "tokens": tokens, "version": tokenizers.__version__}))


if __name__ == "__main__":
    {"train": train, "encode": encode, "tables": tables, "properties": properties, "speed": speed}[sys.argv[1]](*sys.argv[2:])
