package models

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The shipped language model, from a text in the public domain: the works of
// Shakespeare as one file, input.txt of A. Karpathy's char-rnn, in a folder that
// SHAKESPEARE names. The card says what came of it.
//
//go:generate go run ../ train-lm $SHAKESPEARE/input.txt --context 512 --batch 2 --steps 3000 --seed 1 --dtype f16 --about "works of Shakespeare, public domain (tiny shakespeare, input.txt of char-rnn)" --out data/bytes

// Transformer returns the folder of a shipped transformer, in the layout of Hugging
// Face: builtin:bytes is a small language model whose tokens are bytes. Transformer
// fails for any other name, and names the shipped ones.
func Transformer(name string) (fs.FS, error) {
	short, ok := strings.CutPrefix(name, builtin)
	if ok && short != "" && !strings.ContainsAny(short, `/\.`) {
		if info, err := fs.Stat(shipped, path.Join("data", short, "config.json")); err == nil &&
			info.Mode().IsRegular() {
			return fs.Sub(shipped, path.Join("data", short))
		}
	}
	return nil, fmt.Errorf("%s: no such transformer is shipped, want %s", name, strings.Join(Transformers(), ", "))
}

// Transformers returns the names of the shipped transformers, ascending.
func Transformers() (names []string) {
	entries, err := shipped.ReadDir("data")
	if err != nil {
		panic("models: " + err.Error()) // the folder is part of the program
	}
	for _, e := range entries {
		if _, err := fs.Stat(shipped, path.Join("data", e.Name(), "config.json")); e.IsDir() && err == nil {
			names = append(names, builtin+e.Name())
		}
	}
	return names
}
