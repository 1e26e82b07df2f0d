// Gen writes grafana.json and rules.yaml, and docs/metrics.md. `go generate` runs it in
// ops/board.
package main

import (
	"log"
	"os"

	"entropipe/ops/board"
)

func main() {
	dashboard, err := board.JSON()
	if err != nil {
		log.Fatal(err)
	}
	for name, content := range map[string][]byte{"grafana.json": dashboard,
		"rules.yaml": board.YAML(board.DefaultTiming), "../../docs/metrics.md": board.Page()} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
