package models

import (
	"embed"
	"fmt"
	"strings"
)

// shipped holds the models that are part of the program. A model's card names the
// command that makes it.
//
//go:generate go run ../ train synthetic --mode seed --frames 25 --seed 1 --dataset any --sensor any --out data/lidar.safetensors
//go:embed data
var shipped embed.FS

// builtin is the prefix of the names of shipped models.
const builtin = "builtin:"

// Open returns the model in a file, or a shipped model: builtin:lidar holds directions
// for sweeps of rotating scanners.
func Open(name string) (*EntropyNet, error) {
	if !strings.HasPrefix(name, builtin) {
		return ReadEntropyNet(name)
	}
	data, err := readShipped(name)
	if err != nil {
		return nil, err
	}
	return ParseEntropyNet(name, data)
}

// readShipped returns the bytes of a shipped model.
func readShipped(name string) ([]byte, error) {
	data, err := shipped.ReadFile("data/" + strings.TrimPrefix(name, builtin) + ".safetensors")
	if err != nil {
		return nil, fmt.Errorf("%s: no such model is shipped, want %s", name, strings.Join(Builtins(), ", "))
	}
	return data, nil
}

// Builtins returns the names of the shipped models, ascending.
func Builtins() (names []string) {
	entries, err := shipped.ReadDir("data")
	if err != nil {
		panic("models: " + err.Error()) // the folder is part of the program
	}
	for _, e := range entries {
		if short, ok := strings.CutSuffix(e.Name(), ".safetensors"); ok {
			names = append(names, builtin+short)
		}
	}
	return names
}
