// Package tables turns batches into the Parquet files of an output's tables. Its
// Encoder is the sinks.Encoder of the program.
//
// It commits nothing and reads no file: package sinks stages and publishes the files
// that an Encoder writes, and package read reads them.
//
// Vocabulary. A table is a kind of file with fixed columns: frames, hulls, tokens
// and so on (schemas/docs/tables.md). A row group is a part of a file that is encoded
// by itself and contains whole frames. A folder key is a property of frames that
// names a folder of a table: dataset, sequence or date. The footer is the key-value
// metadata of a file.
package tables

import (
	"fmt"
	"slices"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Names of the tables of frames, of rejects and of messages. Those of sequences are in tokens.go.
const (
	Frames    = record.Frames
	Hulls     = "hulls"
	Hulls3D   = "hulls3d"
	Maxima    = "maxima"
	Triangles = "triangles"
	Points    = "points"
	Entropy   = "entropy"
	Rejects   = "rejects"
	Messages  = "messages"
)

// SchemaVersion is the version of the tables' columns. store.json and every footer
// have it. It changes when a column is added, or when its name, type or meaning
// changes: a folder with two schemas is an error in Polars and DuckDB, and pyarrow
// drops columns of it silently.
const SchemaVersion = 2

// table is one kind of file. add appends the rows of one result; has tells whether a
// result has rows, so that no empty file is written.
type table struct {
	name string
	row  any // zero value of a struct whose tags define the schema
	has  func(*schemas.Result) bool
	add  func(*tableWriter, *schemas.Result)
}

// ofRecords tells whether rows are records and no results: then has and add are nil, and the
// files have no folder keys, because a record that cannot be read has none.
func (t *table) ofRecords() bool { return t.has == nil }

// The tables. Table points has two forms, because the coordinates of a file have one
// width: float32, or float64 if any frame of the file has float64.
var (
	framesTable    = &table{Frames, framesRow{}, func(r *schemas.Result) bool { return r.Tokens == nil }, addFrame}
	hullsTable     = &table{Hulls, hullsRow{}, func(r *schemas.Result) bool { return r.Hull != nil }, addHull}
	hulls3DTable   = &table{Hulls3D, hulls3DRow{}, func(r *schemas.Result) bool { return r.Hull3 != nil }, addHull3D}
	maximaTable    = &table{Maxima, maximaRow{}, func(r *schemas.Result) bool { return len(r.Maxima) > 0 }, addMaxima}
	trianglesTable = &table{Triangles, trianglesRow{}, func(r *schemas.Result) bool { return len(r.Triangles) > 0 },
		addTriangles}
	pointsTable     = &table{Points, pointsRow{}, hasPoints, addPoints}
	pointsTableWide = &table{Points, pointsRowWide{}, hasPoints, addPointsWide}
	entropyTable    = &table{Entropy, entropyRow{}, func(r *schemas.Result) bool { return len(r.Entropy) > 0 },
		addEntropy}
	rejectsTable     = &table{name: Rejects, row: rejectsRow{}}
	messagesTable    = &table{name: Messages, row: messagesRow{}}
	selectableTables = []*table{hullsTable, hulls3DTable, maximaTable, trianglesTable, pointsTable, entropyTable}
	allTables        = slices.Concat([]*table{framesTable}, selectableTables, sequenceTables,
		[]*table{rejectsTable, messagesTable})
)

// Names returns the names of all tables, in the order in which a commit writes their
// files.
func Names() []string {
	names := make([]string, len(allTables))
	for i, t := range allTables {
		names[i] = t.name
	}
	return names
}

func hasPoints(r *schemas.Result) bool { return r.Points != nil && r.Points.Len() > 0 }

// selectTables returns the tables of results that are always written and the named ones, each
// once, in the order in which files are written. Tables rejects and messages are apart.
func selectTables(names []string) ([]*table, error) {
	want := map[string]bool{}
	for _, name := range names {
		want[name] = true
	}
	delete(want, Frames)
	delete(want, Rejects)
	delete(want, Messages)
	for _, t := range sequenceTables {
		delete(want, t.name)
	}
	selected := []*table{framesTable}
	for _, t := range selectableTables {
		if want[t.name] {
			selected = append(selected, t)
			delete(want, t.name)
		}
	}
	for _, name := range names {
		if want[name] {
			return nil, &sinks.ConfigError{Field: "tables",
				Problem: fmt.Sprintf("there is no table %q; there are frames, tokens, attention_stats and rejects "+
					"(always), hulls, hulls3d, maxima, triangles, points, entropy, messages", name)}
		}
	}
	return append(selected, sequenceTables...), nil
}
