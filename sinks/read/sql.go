package read

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// SQL returns what opens each of these tables of the output in a folder and no other: views of
// DuckDB, and calls of Python's readers as comments. It returns "" without tables.
//
// A reader that gets the output's own folder takes all tables for one and says nothing: pyarrow
// keeps the columns of the first file that it finds, DuckDB too.
func SQL(output string, tables []string) string {
	if len(tables) == 0 {
		return ""
	}
	var w strings.Builder
	root := strings.TrimRight(output, "/")
	if strings.Contains(output, "://") {
		fmt.Fprintf(&w, "-- DuckDB reads buckets after: INSTALL httpfs; LOAD httpfs; CREATE SECRET (TYPE s3, PROVIDER "+
			"credential_chain);\n-- for another server than AWS add: ENDPOINT 'host:port', URL_STYLE 'path'.\n")
	} else {
		root = filepath.ToSlash(filepath.Clean(output))
	}
	fmt.Fprintf(&w, "-- One view a table. A glob over the whole folder (%s/**/*.parquet) would mix the rows of all "+
		"tables, without an error.\n", comment(root))
	for _, t := range tables {
		options := "hive_partitioning=true"
		if t == "points" { // files of float32 beside files of float64
			options += ", union_by_name=true"
		}
		fmt.Fprintf(&w, "CREATE OR REPLACE VIEW %s AS SELECT * FROM read_parquet(%s, %s);\n", t,
			quoteSQL(globOf(root)+"/"+t+"/**/*.parquet"), options)
	}
	fmt.Fprintf(&w, "-- The same elsewhere, one table at a time:\n")
	for _, t := range tables {
		folder := comment(strconv.Quote(root + "/" + t))
		reader := "pyarrow.dataset.dataset(" + folder + ", partitioning=\"hive\")"
		if t == "hulls" {
			reader = "geopandas.read_parquet(" + folder + ")"
		}
		fmt.Fprintf(&w, "--   %-15s %s\n", t, reader)
	}
	return w.String()
}

// globOf returns a path as a glob that matches it alone.
func globOf(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// quoteSQL returns text as a literal of SQL.
func quoteSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// comment returns text without what would end a line of comment.
func comment(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }
