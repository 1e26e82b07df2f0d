package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every family of (b) is measured at every stretch with every seed: the cells are
// the product, and no two of them make the same set.
func TestFamiliesDoNotDependOnSeeds(t *testing.T) {
	found := map[string]int{}
	for _, c := range failureCells(whole) {
		if strings.HasPrefix(c.key, "stretch=") {
			found[c.key]++
		}
	}
	if len(found) != len(stretches)*len(stretchFamilies) {
		t.Errorf("%d cells of %d stretches and %d families", len(found), len(stretches), len(stretchFamilies))
	}
	for _, seed := range append(slices.Clone(seeds), 0, 1, 2) {
		var first []float64
		for _, f := range stretchFamilies {
			c := f.make(50, seed)
			if slices.Equal(c.X, first) {
				t.Errorf("seed %d: %s are the family before", seed, f.name)
			}
			first = c.X
		}
	}
}

// What a seed modulo a number chooses is constant over seeds with a common
// divisor, as five out of five were: no experiment may choose by it.
func TestNothingIsChosenBySeeds(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		// tests take seeds in a row
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, line := range chosenBySeeds(t, path, string(source)) {
			t.Error(line)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
	for _, source := range []string{"makers[seed%3]", "makers[int(o.Seed)%len(makers)]",
		"seeds[k]&1 == 0", "seeds[k]/2"} {
		if len(chosenBySeeds(t, "a.go", "package a\nvar x = "+source)) == 0 {
			t.Errorf("%s is not found", source)
		}
	}
}

// chosenBySeeds returns the places where a remainder, a bit or a quotient of a seed is
// taken.
func chosenBySeeds(t *testing.T, path, source string) (found []string) {
	places := token.NewFileSet()
	file, err := parser.ParseFile(places, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || b.Op != token.REM && b.Op != token.AND && b.Op != token.QUO && b.Op != token.SHR {
			return true
		}
		seed := false
		ast.Inspect(b.X, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				f, named := n.Fun.(*ast.Ident)
				if !named || f.Name != "int" && f.Name != "int64" && f.Name != "uint64" {
					return false // len(seeds) is no seed
				}
			case *ast.Ident:
				seed = seed || n.Name == "seed" || n.Name == "Seed" || n.Name == "seeds"
			}
			return true
		})
		if seed {
			found = append(found, places.Position(b.Pos()).String()+" chooses by a seed")
		}
		return true
	})
	return found
}

// The words of the verdict follow from the intervals.
func TestMovesAreWordedByTheirIntervals(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	var from, up, around record
	from.add("h", seeds, []float64{1, 2, 3})
	up.add("h", seeds, []float64{1.5, 2.51, 3.52})
	around.add("h", seeds, []float64{1.5, 1.5, 3.1})
	for _, c := range []struct {
		from, to *record
		want     string
	}{{&from, &up, "rises by 0.510 ± 0.025"}, {&up, &from, "falls by 0.510 ± 0.025"},
		{&from, &around, "which is not told from zero"}} {
		if got := moves(c.from, c.to, "h"); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
