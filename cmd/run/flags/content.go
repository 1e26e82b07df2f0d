package flags

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"entropipe/cmd/command"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/tables"
)

// What decides rows. Every flag of run has the tag content: yes where another
// value makes other rows of the same records, no where it does not. Processes of
// one output must agree about the first kind; the second is everybody's own.

// DefaultChunkWindow is the default of --chunk-window.
const DefaultChunkWindow = 64 << 20

// Content returns what decides the rows of this configuration: the schema of
// the tables, the flags that say so, with defaults filled in and without those that
// do nothing, and the hashes of models in place of the names of their files. hashes
// has lines of key and value.
func (c *Flags) Content(frames *pipeline.FrameConfig, names []string, hashes string) sinks.Content {
	content := sinks.Content{"schema": strconv.Itoa(tables.SchemaVersion)}
	contentFlags(reflect.ValueOf(c).Elem(), content)
	ops, space := contentOps(frames)
	content["ops"], content["tables"] = ops, contentTables(frames, names, space)
	content["content-type"] = frames.ContentTypes.String()
	if !slices.Contains(names, "entropy") || c.Frames.EntropyEvery == 0 {
		delete(content, "entropy-every")
	}
	t := &c.Tokens
	var idle []string
	if c.Source.ChunkWindow == DefaultChunkWindow { // outputs from before the flag have it, too
		idle = append(idle, "chunk-window")
	}
	if t.Task != "generate" {
		idle = append(idle, "max-new")
	}
	if t.Task != "logits" {
		idle = append(idle, "top-k")
	}
	if t.Mask == "" {
		idle = append(idle, "mask-use", "ladder", "ladder-blocks", "audit-every")
	}
	if t.Ladder == 0 {
		idle = append(idle, "ladder", "ladder-blocks")
	}
	if t.LM == "" {
		of := sinks.Content{}
		contentFlags(reflect.ValueOf(t).Elem(), of)
		for name := range of {
			idle = append(idle, name)
		}
	} else {
		content["lm"] = command.NameOfModel(t.LM)
	}
	for _, name := range idle {
		delete(content, name)
	}
	for line := range strings.Lines(hashes) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasSuffix(key, "_sha256") {
			content[key] = value
		}
	}
	return content
}

// contentFlags adds the flags of a struct that decide rows, as texts. A list is a
// set: its order and repetitions change nothing.
func contentFlags(v reflect.Value, to sinks.Content) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if _, embedded := f.Tag.Lookup("embed"); embedded {
			contentFlags(v.Field(i), to)
		}
		if f.Tag.Get("content") == "yes" {
			to[flagOfField(f)] = contentText(v.Field(i))
		}
	}
}

func contentText(v reflect.Value) string {
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var elements []string
	for i := range v.Len() {
		elements = append(elements, fmt.Sprint(v.Index(i).Interface()))
	}
	slices.Sort(elements)
	return strings.Join(slices.Compact(elements), ",")
}

// flagOfField returns the name that kong gives to a field's flag.
func flagOfField(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// contentOps lists the operators that run, and those of a cloud with z. By
// default the two kinds of clouds have different ones.
func contentOps(frames *pipeline.FrameConfig) (text string, space []schemas.Op) {
	flat, space := frames.OpsForPlane(), frames.OpsForSpace()
	var names []string
	for op := range schemas.NumOps {
		switch op, f, s := schemas.Op(op), slices.Contains(flat, schemas.Op(op)),
			slices.Contains(space, schemas.Op(op)); {
		case f && s:
			names = append(names, op.String())
		case f:
			names = append(names, op.String()+" (without z)")
		case s:
			names = append(names, op.String()+" (with z)")
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none", space
	}
	return strings.Join(names, ","), slices.Concat(flat, space)
}

// contentTables lists the tables that get rows besides frames and rejects.
func contentTables(frames *pipeline.FrameConfig, tables []string, ops []schemas.Op) string {
	tables = slices.DeleteFunc(slices.Clone(tables), func(t string) bool {
		writers := TableOps[t]
		return writers != nil && !slices.ContainsFunc(writers,
			func(op schemas.Op) bool { return slices.Contains(ops, op) }) ||
			t == "entropy" && frames.EntropyEvery == 0
	})
	slices.Sort(tables)
	return strings.Join(slices.Compact(tables), ",")
}
