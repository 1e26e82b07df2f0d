package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/models/safetensors"
	"entropipe/schemas"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// writeLM writes a transformer of random weights that knows every byte and has
// 32 positions, and returns its folder. Its tokenizer has a token for each byte.
func writeLM(t *testing.T, dir, arch string) string {
	t.Helper()
	c := &hf.Config{Arch: arch, Model: arch, Layers: 1, Hidden: 32, Inner: 64, Heads: 2, KVHeads: 2, Dim: 16,
		Vocab: 256, MaxPositions: 32,
		Act: hf.GELU, Eps: 1e-5, Scale: .25, QKVBias: true, OutBias: true, MLPBias: true, BOS: -1}
	if arch == hf.GPT2 {
		c.Causal, c.Tied, c.Head, c.Act = true, true, true, hf.GELUTanh
	} else {
		c.Types = 2
	}
	rng := rand.New(rand.NewPCG(3, 0))
	tensors := map[string][]float32{}
	for _, tensor := range c.Tensors() {
		n := 1
		for _, d := range tensor.Shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64()) / 8
		}
		tensors[tensor.Name] = v
	}
	dir = filepath.Join(dir, arch)
	if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
		t.Fatal(err)
	}
	tokenizer, err := os.ReadFile(filepath.Join("ops", "pipeline", "testdata", "bytes.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sendSequences sends messages of so many sequences each, of 1 to 32 tokens,
// and as a last one a text.
func sendSequences(t *testing.T, brokers, topic string, packs ...int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 0))
	var enc schemas.Encoder
	var all []kafka.Message
	add := func(value []byte, err error, schema string) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, kafka.Message{Key: fmt.Append(nil, len(all)), Value: value, Headers: []kafka.Header{
			{Key: schemas.HeaderSchema, Value: []byte(schema)}, {Key: schemas.HeaderDataset, Value: []byte("d")}}})
	}
	for m, n := range packs {
		var rows []schemas.Sequence
		for i := range n {
			ids := make([]int32, 1+rng.IntN(32))
			for k := range ids {
				ids[k] = int32(rng.IntN(256))
			}
			rows = append(rows, schemas.Sequence{ID: fmt.Sprintf("%d/%d", m, i), IDs: ids})
		}
		value, err := enc.AppendTokens(nil, rows, schemas.Vocabulary{})
		add(value, err, schemas.SchemaTokens)
	}
	value, err := enc.AppendText(nil, []schemas.Sequence{{ID: "hello", Text: "hello"},
		{ID: "long", Text: strings.Repeat("long ", 20)}})
	add(value, err, schemas.SchemaText)
	if err := sendRaw(brokers, topic, all...); err != nil {
		t.Fatal(err)
	}
}

// Sequences of one topic become the same rows whatever the batches and workers;
// beside them, clouds become what they always do.
func TestSequencesBecomeRows(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.GPT2)
	sendSequences(t, brokers, "tokens", 3, 1, 40, 1, 1, 1, 7)
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--topic", "points", "--frames", "3", "--points",
		"500", "--rate", "max")
	run := func(out string, more ...string) *process {
		p := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", "tokens", "--out", out,
			"--until-end", "--lm", lm, "--truncate"}, more...)...)
		p.exits(0, patience)
		return p
	}
	for _, task := range []string{"embed", "logits", "generate"} {
		p := run(task, "--task", task, "--max-new", "3", "--topic", "points")
		p.says(`msg=done frames=3 points=\d+ rejects=0 .* sequences=56 tokens=\d+ batches=\d+ batch_fill=\S+ padding=0`)
		p.says(`msg="language model" lm=\S+gpt2 arch=gpt2 .* task=` + task)
		verified(t, filepath.Join(dir, task))
		for table, rows := range map[string]int64{"frames": 3, "tokens": 56, "rejects": 0} {
			if n, err := countRows(filepath.Join(dir, task, table)); err != nil || n != rows {
				t.Errorf("%s: %d rows in %s, want %d; %v", task, n, table, rows, err)
			}
		}
		run(task+"2", "--task", task, "--max-new", "3", "--workers", "1", "--token-budget", "40")
		a, b := rowsOf(t, filepath.Join(dir, task), "tokens"), rowsOf(t, filepath.Join(dir, task+"2"), "tokens")
		if !slices.Equal(a, b) {
			t.Errorf("%s: the rows differ with other batches", task)
		}
	}
}

// Rows of rounded weights say so, and do not depend on their batches either.
func TestRoundedWeightsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.BERT)
	sendSequences(t, brokers, "tokens", 3, 1, 40, 7)
	run := func(out string, more ...string) *process {
		p := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", "tokens", "--out", out,
			"--until-end", "--lm", lm, "--truncate"}, more...)...)
		p.exits(0, patience)
		return p
	}
	run("plain")
	run("rounded", "--weights", "bf16").says(`msg="language model" .* weights=bf16`)
	run("rounded2", "--weights", "bf16", "--workers", "1", "--token-budget", "40")
	for out, want := range map[string]string{"plain": "f32", "rounded": "bf16"} {
		verified(t, filepath.Join(dir, out))
		if got, err := countValues(filepath.Join(dir, out, "tokens"), "weights"); err != nil ||
			len(got) != 1 || got[want] == 0 {
			t.Errorf("%s: weights %v, %v, want %s", out, got, err, want)
		}
	}
	a, b := rowsOf(t, filepath.Join(dir, "rounded"), "tokens"), rowsOf(t, filepath.Join(dir, "rounded2"), "tokens")
	if len(a) != 53 || !slices.Equal(a, b) {
		t.Errorf("%d rows, of 53, or they differ with other batches", len(a))
	}
}

// Without a model, sequences are rejects; a text that is too long is one with
// a model too, unless it is to be cut.
func TestSequencesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.BERT)
	sendSequences(t, brokers, "tokens", 2)
	args := []string{"run", "--brokers", brokers, "--topic", "tokens", "--until-end"}
	none := launch(t, dir, append(args, "--out", "none")...)
	none.exits(1, patience)
	none.says(`^entropipe: nothing but rejects came, 2 of them`)
	verified(t, filepath.Join(dir, "none"))
	if got, err := countValues(filepath.Join(dir, "none", "rejects"), "reason"); err != nil || got["no_model"] != 2 {
		t.Errorf("without a model: %v, %v", got, err)
	}
	must(t, dir, append(args, "--out", "some", "--lm", lm)...)
	if got, err := countValues(filepath.Join(dir, "some", "rejects"), "reason"); err != nil ||
		got["too_long"] != 1 || len(got) != 1 {
		t.Errorf("with one: %v, %v", got, err)
	}
	if n, err := countRows(filepath.Join(dir, "some", "tokens")); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// What cannot work is one clear line and status 78, before anything is made.
func TestModelsThatCannotServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	encoder, decoder := writeLM(t, dir, hf.BERT), writeLM(t, dir, hf.GPT2)
	broken := writeLM(t, filepath.Join(dir, "broken"), hf.GPT2)
	if err := os.WriteFile(filepath.Join(broken, "model.safetensors"), []byte("no tensors"), 0o666); err != nil {
		t.Fatal(err)
	}
	cased := writeLM(t, filepath.Join(dir, "cased"), hf.BERT)
	if err := os.Mkdir(filepath.Join(cased, "p"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"modules.json":  `[{"path":"","type":"Transformer"},{"path":"p","type":"Pooling"}]`,
		"p/config.json": `{"pooling_mode":"mean"}`, "sentence_bert_config.json": `{"do_lower_case":true}`} {
		if err := os.WriteFile(filepath.Join(cased, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	odd := writeLM(t, filepath.Join(dir, "odd"), hf.GPT2)
	if err := os.WriteFile(filepath.Join(odd, "tokenizer.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--lm", "nowhere"}, 78, `^lm: .*nowhere`},
		{[]string{"--lm", "builtin:nothing"}, 78, `^lm: .*builtin:nothing`},
		{[]string{"--lm", broken}, 78, `^lm: .*model\.safetensors`},
		{[]string{"--lm", odd}, 78, `^lm: .*tokenizer\.json`},
		{[]string{"--lm", cased}, 78, `^lm: .*do_lower_case: its tokenizer knows capitals`},
		{[]string{"--lm", encoder, "--task", "logits"}, 78, `^task: logits: .*bert is an encoder`},
		{[]string{"--lm", decoder, "--task", "generate", "--max-new", "32"}, 78,
			`^task: generate: --max-new 32 leaves no room in the 32 positions`},
		{[]string{"--lm", decoder, "--mask", "nowhere"}, 78, `^mask: .*nowhere`},
		{[]string{"--mask", "nowhere"}, 2, `--mask nowhere needs --lm`},
		{[]string{"--task", "generate"}, 2, `--task generate needs --lm`},
		{[]string{"--weights", "bf16"}, 2, `--weights bf16 needs --lm`},
		{[]string{"--lm", decoder, "--top-k", "0"}, 2, `--top-k 0: want 1 to`},
		{[]string{"--lm", decoder, "--token-budget", "0"}, 2, `--token-budget 0: want 1 to`},
		{[]string{"--lm", decoder, "--task", "classify"}, 2, `--task must be one of`},
	} {
		p := launch(t, dir, append([]string{"run", "--out", "out"}, c.args...)...)
		p.exits(c.status, patience)
		p.says(c.says)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("an output was made")
	}
}

// validate reads the model as run would.
func TestValidateReadsTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lm := writeLM(t, dir, hf.GPT2)
	file := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(file, []byte("lm: "+lm+"\ntask: generate\nmax-new: 8\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out := must(t, dir, "validate", file); !strings.Contains(out,
		"gpt2, 1 layers of 32, up to 32 tokens, for generate; with a tokenizer") {
		t.Errorf("it says\n%s", out)
	}
	m, err := model.Load(lm)
	if err != nil {
		t.Fatal(err)
	}
	mask := writeMask(t, filepath.Join(dir, "mask"), hf.GPT2, m.SHA256(), 16)
	for use, want := range map[string]string{"always": "; attention by " + mask + " from 1 to 16 tokens\n",
		"auto": "; attention dense in spite of " + mask + ": the mask says dense: a test\n"} {
		if out := must(t, dir, "validate", file, "--mask", mask, "--mask-use", use); !strings.Contains(out, want) ||
			!strings.Contains(out, "triangles, tokens, attention_stats\n") {
			t.Errorf("%s: it says\n%s\nwant %q", use, out, want)
		}
	}
	p := launch(t, dir, "validate", file, "--max-new", "40")
	p.exits(1, patience)
}

// writeMask writes masks of a window of one block, for up to so many tokens, for
// a model of writeLM.
func writeMask(t *testing.T, dir, arch, weights string, tokens int) string {
	t.Helper()
	causal := arch == hf.GPT2
	facts := support.Facts{Arch: arch, Weights: weights, Layers: 1, Heads: 2, KVHeads: 2, Dim: 16, Causal: causal}
	set := &support.Set{Facts: facts, Block: 16, Mode: support.Static, Serve: support.Dense, Reason: "a test",
		Select: support.Selector{Name: "window"},
		Source: support.Source{SHA256: strings.Repeat("0", 64)},
		Buckets: []support.Bucket{{Length: tokens, Of: []int32{0, 0},
			Layouts: []*support.Layout{support.New(tokens, 16, causal, func(r int) []int32 {
				return []int32{int32(r)}
			})}}}}
	if err := set.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Masks serve where they are told to, the log says up to how many tokens, and what they drop is in table
// attention_stats; else the log says why attention is dense. Masks for other
// weights are refused.
func TestMasksOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.GPT2)
	m, err := model.Load(lm)
	if err != nil {
		t.Fatal(err)
	}
	mask := writeMask(t, filepath.Join(dir, "mask"), hf.GPT2, m.SHA256(), 32)
	short := writeMask(t, filepath.Join(dir, "short"), hf.GPT2, m.SHA256(), 16)
	foreign := writeMask(t, filepath.Join(dir, "foreign"), hf.GPT2, strings.Repeat("ab", 32), 32)
	sendSequences(t, brokers, "tokens", 20)
	args := []string{"run", "--brokers", brokers, "--topic", "tokens", "--until-end", "--lm", lm, "--truncate",
		"--audit-every", "1"}
	must(t, dir, append(args, "--out", "sparse", "--mask", mask, "--mask-use", "always")...)
	verified(t, filepath.Join(dir, "sparse"))
	p := launch(t, dir, append(args, "--out", "short", "--mask", short, "--mask-use", "always")...)
	p.exits(0, patience)
	p.says(`level=INFO msg="attention is sparse, by frozen masks" .* from=1 to=16 `)
	if n, err := countRows(filepath.Join(dir, "sparse", "attention_stats")); err != nil || n != 22*2 {
		t.Errorf("%d rows of attention_stats, want 44; %v", n, err)
	}
	p = launch(t, dir, append(args, "--out", "dense", "--mask", mask)...)
	p.exits(0, patience)
	p.says(`level=WARN msg="attention is dense in spite of the masks" .* reason="the mask says dense: a test"`)
	if n, err := countRows(filepath.Join(dir, "dense", "attention_stats")); err != nil || n != 0 {
		t.Errorf("%d rows of attention_stats without a mask at work; %v", n, err)
	}
	without := "mask_sha256"
	if a, b := rowsOf(t, filepath.Join(dir, "sparse"), "tokens", without),
		rowsOf(t, filepath.Join(dir, "dense"), "tokens", without); len(a) != len(b) || slices.Equal(a, b) {
		t.Errorf("%d rows with masks, %d without, and they are equal: %v", len(a), len(b), slices.Equal(a, b))
	}
	p = launch(t, dir, append(args, "--out", "none", "--mask", foreign)...)
	p.exits(78, patience)
	p.says(`^mask: .*foreign: mask: it was made for the weights abab.*freeze it for this checkpoint`)
}

// permuted writes the tokenizer of a folder again with two tokens exchanged.
func permuted(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := strings.NewReplacer(`"a": 97`, `"a": 98`, `"b": 98`, `"b": 97`, `"a":97`, `"a":98`, `"b":98`,
		`"b":97`).Replace(string(data))
	if s == string(data) {
		t.Fatal("the tokenizer is as it was")
	}
	if err = os.MkdirAll(to, 0o777); err == nil {
		err = os.WriteFile(filepath.Join(to, "tokenizer.json"), []byte(s), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Ids of a permuted vocabulary become rejects, not rows; the closing line counts
// those that nobody answers for.
func TestIDsOfAPermutedVocabulary(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.BERT)
	permuted(t, lm, filepath.Join(dir, "permuted"))
	text := filepath.Join(dir, "texts.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("about a cab\n", 50)), 0o666); err != nil {
		t.Fatal(err)
	}
	for tokenizer, want := range map[string]string{"permuted": "rejects", lm: "tokens"} {
		topic := "of-" + want
		must(t, dir, "produce", "tokens", text, "--tokenizer", tokenizer, "--brokers", brokers, "--topic", topic,
			"--rate", "max", "--pack", "1")
		sendSequences(t, brokers, topic) // two texts
		must(t, dir, "run", "--brokers", brokers, "--topic", topic, "--until-end", "--lm", lm,
			"--truncate", "--out", topic)
		for table, rows := range map[string]int64{"rejects": 0, "tokens": 2} {
			if table == want {
				rows += 50
			}
			if n, err := countRows(filepath.Join(dir, topic, table)); err != nil || n != rows {
				t.Errorf("%s: %d rows in %s, %v, want %d", tokenizer, n, table, err, rows)
			}
		}
	}
	if got, err := countValues(filepath.Join(dir, "of-rejects", "rejects"), "reason"); err != nil ||
		got["other_tokenizer"] != 50 {
		t.Errorf("reasons: %v, %v", got, err)
	}
	sendSequences(t, brokers, "unnamed", 3, 4)
	p := launch(t, dir, "run", "--brokers", brokers, "--topic", "unnamed", "--until-end", "--lm", lm, "--truncate",
		"--out", "unnamed")
	p.exits(0, patience)
	p.says(`msg=done .* unverified=7`)
}

// A tokenizer that is too large for its model, and texts for a model without one,
// are found at the start.
func TestTokenizersAtTheStart(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	large := writeLM(t, filepath.Join(dir, "large"), hf.BERT)
	data, err := os.ReadFile(filepath.Join(large, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	added := strings.Replace(string(data), `"added_tokens": []`,
		`"added_tokens": [{"id": 256, "content": "<pad>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`, 1)
	if err := os.WriteFile(filepath.Join(large, "tokenizer.json"), []byte(added), 0o666); err != nil ||
		added == string(data) {
		t.Fatal("no token was added: ", err)
	}
	p := launch(t, dir, "run", "--brokers", brokers, "--topic", "texts", "--until-end", "--lm", large, "--out", "a")
	p.exits(command.ExitConfig, patience)
	p.says(`tokenizer.json has ids up to 256, but the embedding of the model has 256 rows`)
	lm := writeLM(t, dir, hf.BERT)
	if err := os.Remove(filepath.Join(lm, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	sendSequences(t, brokers, "texts")
	p = launch(t, dir, "run", "--brokers", brokers, "--topic", "texts", "--until-end", "--lm", lm, "--out", "b")
	p.exits(command.ExitConfig, patience)
	p.says(`no tokenizer.json, but topic texts begins with texts \(partition \d+, offset 0\)`)
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("the start that failed left an output")
	}
	sendSequences(t, brokers, "ids", 3)
	p = launch(t, dir, "run", "--brokers", brokers, "--topic", "ids", "--until-end", "--lm", lm,
		"--truncate", "--out", "c")
	p.exits(0, patience)
	p.says(`level=WARN msg="the model's folder has no tokenizer.json: texts become rejects`)
	p.says(`msg=done .* unverified=3`)
	must(t, dir, "run", "--brokers", brokers, "--topic", "ids", "--until-end", "--lm", lm, "--truncate", "--out", "c")
	p = launch(t, dir, "run", "--brokers", brokers, "--topic", "texts", "--until-end", "--lm", lm, "--out", "c")
	p.exits(command.ExitConfig, patience) // a topic that is new to the output
}

// A name of a hub, where no folder has it, is answered by what --lm takes; a path
// that could be no such name keeps its own error.
func TestNamesOfHubsAreNotFetched(t *testing.T) {
	t.Chdir(t.TempDir())
	text := writeText(t, "text.txt", "some text\n")
	for _, args := range [][]string{
		{"validate", writeText(t, "a.yaml", "lm: sentence-transformers/all-MiniLM-L6-v2\n")},
		{"freeze", "--lm", "sentence-transformers/all-MiniLM-L6-v2", "--calibrate", text, "--out", "mask"},
		{"produce", "tokens", text, "--tokenizer", "sentence-transformers/all-MiniLM-L6-v2"},
	} {
		var out, said bytes.Buffer
		if status := cmd.Main(args, &out, &said); status == 0 ||
			!strings.Contains(out.String()+said.String(), "Local folders only") ||
			!strings.Contains(out.String()+said.String(), "--local-dir all-MiniLM-L6-v2") {
			t.Errorf("%q: status %d, %s%s", args, status, out.String(), said.String())
		}
	}
}

// With a ladder some rows read all keys, and the last line, the log and table
// attention_stats count them; one that asks for everything gives dense rows. It
// is part of what the output is: another ladder is another configuration.
func TestLadderOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.BERT)
	m, err := model.Load(lm)
	if err != nil {
		t.Fatal(err)
	}
	mask := writeMask(t, filepath.Join(dir, "mask"), hf.BERT, m.SHA256(), 32)
	sendSequences(t, brokers, "tokens", 20)
	run := func(out string, more ...string) []string {
		args := []string{"run", "--brokers", brokers, "--topic", "tokens", "--until-end", "--lm", lm, "--truncate",
			"--audit-every", "1", "--out", out}
		p := launch(t, dir, append(args, more...)...)
		p.exits(0, patience)
		if slices.Contains(more, "--ladder") {
			p.says(`attention is sparse, by frozen masks.* ladder=[01]`)
			p.says(`msg=done .* ladder_rows=[1-9][0-9]* ladder_extended=[0-9]+ ladder_dense=[1-9]`)
		}
		verified(t, filepath.Join(dir, out))
		return rowsOf(t, filepath.Join(dir, out), "tokens", "mask_sha256")
	}
	masked := []string{"--mask", mask, "--mask-use", "always"}
	plain, some := run("plain", masked...), run("some", append(masked, "--ladder", "0.4")...)
	all, dense := run("all", append(masked, "--ladder", "1e-7")...), run("dense")
	if slices.Equal(plain, some) || slices.Equal(some, dense) || !slices.Equal(all, dense) {
		t.Errorf("rows by masks and by the ladder are equal: %v, by the ladder and dense: %v, dense and by a ladder "+
			"without tolerance: %v",
			slices.Equal(plain, some), slices.Equal(some, dense), slices.Equal(all, dense))
	}
}

// What a ladder cannot go with is one clear error, and leaves no trace.
func TestLadderMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	decoder, encoder := writeLM(t, dir, hf.GPT2), writeLM(t, dir, hf.BERT)
	shaOf := func(lm string) string {
		m, err := model.Load(lm)
		if err != nil {
			t.Fatal(err)
		}
		return m.SHA256()
	}
	causal := writeMask(t, filepath.Join(dir, "causal"), hf.GPT2, shaOf(decoder), 32)
	fixed := writeMask(t, filepath.Join(dir, "fixed"), hf.BERT, shaOf(encoder), 32)
	anchored := &support.Set{Facts: support.Facts{Arch: hf.BERT, Weights: shaOf(encoder), Layers: 1, Heads: 2,
		KVHeads: 2, Dim: 16},
		Block: 16, Mode: support.Anchor, Serve: support.Dense, Reason: "a test",
		Select:  support.Selector{Name: "affinity", Sparsity: .5},
		Source:  support.Source{SHA256: strings.Repeat("0", 64)},
		Buckets: []support.Bucket{{Length: 32, Of: []int32{-1, -1}}},
		Anchors: &support.Anchors{K: 2, Data: make([]float32, 2*2*16)}}
	if err := anchored.Write(filepath.Join(dir, "anchored")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--lm", decoder, "--mask", causal, "--ladder", "0.1"}, 78, `^ladder: .*is a decoder`},
		{[]string{"--lm", encoder, "--mask", filepath.Join(dir, "anchored"), "--ladder", "0.1"}, 78,
			`^ladder: the masks of .*anchored follow each input`},
		{[]string{"--lm", encoder, "--ladder", "0.1"}, 2, `--ladder 0\.1 needs --mask`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "0.1", "--device", "cuda"}, 2,
			`--ladder 0\.1: .*--device is cuda`},
		{[]string{"--lm", decoder, "--task", "generate", "--device", "cuda"}, 2,
			`--device cuda: --task generate .* would never use the GPU`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "1"}, 2,
			`--ladder 1: want a share of the softmax, at least 0 and below 1`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder=-0.1"}, 2, `--ladder -0\.1: want a share`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "NaN"}, 2, `--ladder NaN: want a share`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder-blocks", "2"}, 2, `--ladder-blocks 2 needs --ladder`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "0.1", "--ladder-blocks=-1"}, 2,
			`--ladder-blocks -1: want 0 to`},
	} {
		p := launch(t, dir, append([]string{"run", "--out", "out"}, c.args...)...)
		p.exits(c.status, patience)
		p.says(c.says)
	}
}
