package models

import (
	"embed"
	"fmt"
	"strings"
)

// shipped are the models that the program brings with it. The command that
// makes each stands in its card.
//
//go:generate go run ../ train synthetic --mode seed --frames 25 --seed 1 --dataset any --sensor any --out data/lidar.safetensors
//go:embed data
var shipped embed.FS

// builtin begins the names of models that are shipped.
const builtin = "builtin:"

// Open reads the model of a file, or one that is shipped: builtin:lidar holds
// directions for sweeps of rotating scanners.
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

// Builtins returns the names of the models that are shipped.
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
