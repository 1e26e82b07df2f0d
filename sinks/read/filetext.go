package read

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"entropipe/sinks/tables"
)

// Formats of the text of a FileList.
const (
	DuckDB = "duckdb"
	Spark  = "spark"
	Polars = "polars"
)

// Roots says where the files of a list lie, for its text.
type Roots struct {
	Out, With string // addresses; With may be empty
	Endpoint  string // server of buckets, as a URL; empty: AWS
	Region    string // region of the bucket; empty: the reader finds it
}

// Text returns what opens each table of the list, in a Format: SQL of DuckDB with a view a table,
// or Python with a variable a table.
func (l *FileList) Text(format string, r Roots) string {
	t := fileText{FileList: l, Roots: r, comment: "#"}
	if format == DuckDB {
		t.comment = "--"
	}
	t.head()
	switch format {
	case DuckDB:
		t.duckdb()
	case Spark:
		t.spark()
	default:
		t.polars()
	}
	return t.String()
}

// fileText is the text of a FileList while it is written.
type fileText struct {
	strings.Builder
	*FileList
	Roots
	comment string
}

// line writes a line of comment.
func (t *fileText) line(format string, args ...any) {
	fmt.Fprintf(t, "%s %s\n", t.comment, comment(fmt.Sprintf(format, args...)))
}

// head says what the list holds.
func (t *fileText) head() {
	t.line("The rows of %s, each once. Rows that are committed later are missing: print this again.", t.Out)
	if t.With != "" {
		t.line("A vacuum deletes files of %s that a later list takes from %s.", t.Out, t.With)
	}
	for _, p := range t.Partitions {
		switch {
		case p.Base == p.End:
			t.line("%s/%d: no offsets", p.Topic, p.Partition)
		case t.With == "" || p.Compacted == p.Base:
			t.line("%s/%d: offsets %d to %d", p.Topic, p.Partition, p.Base, p.End-1)
		case p.Compacted == p.End:
			t.line("%s/%d: offsets %d to %d, all compacted", p.Topic, p.Partition, p.Base, p.End-1)
		default:
			t.line("%s/%d: offsets %d to %d, compacted up to %d", p.Topic, p.Partition, p.Base, p.End-1, p.Compacted-1)
		}
		if p.Left > 0 {
			t.line("%s/%d: offsets %d to %d are committed, and their files not in place yet: they are left out",
				p.Topic,
				p.Partition, p.End, p.Left-1)
		}
	}
	if len(t.Tables) == 0 {
		t.line("There is no file yet.")
	}
}

func (t *fileText) bucket() bool {
	return strings.Contains(t.Out, "://") || strings.Contains(t.With, "://")
}

// part is the files of a table in one output.
type part struct {
	root  string
	files []string
}

func (t *fileText) parts(table *TableFileList) (parts []part) {
	for _, p := range []part{{t.With, table.Compacted}, {t.Out, table.Files}} {
		if p.root = rootOf(p.root); len(p.files) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// rootOf returns an address with slashes and without one at its end.
func rootOf(address string) string {
	if !strings.Contains(address, "://") {
		address = filepath.ToSlash(address)
	}
	return strings.TrimRight(address, "/")
}

// duckdb writes views. The files of each output are read by themselves: folders above an output
// that look like key=value may differ.
func (t *fileText) duckdb() {
	if t.bucket() {
		secret := "TYPE s3, PROVIDER credential_chain"
		if host, secure, ok := t.host(); ok {
			secret += fmt.Sprintf(", ENDPOINT %s, URL_STYLE 'path'", quoteSQL(host))
			if !secure {
				secret += ", USE_SSL false"
			}
		}
		if t.Region != "" {
			secret += ", REGION " + quoteSQL(t.Region)
		}
		t.line("Before: INSTALL httpfs; LOAD httpfs; INSTALL aws; LOAD aws; CREATE SECRET (%s);", secret)
	}
	for i := range t.Tables {
		table := &t.Tables[i]
		fmt.Fprintf(t, "CREATE OR REPLACE VIEW %s AS", table.Table)
		for k, p := range t.parts(table) {
			if k > 0 {
				t.WriteString("\nUNION ALL BY NAME")
			}
			t.WriteString("\nSELECT * FROM read_parquet([")
			t.each(p.files, func(file string) string { return quoteSQL(globOf(p.root) + "/" + globOf(file)) })
			options := "hive_partitioning=true"
			if table.Table == tables.Points { // files of float32 beside files of float64
				options += ", union_by_name=true"
			}
			fmt.Fprintf(t, "], %s)", options)
		}
		t.WriteString(";\n")
	}
}

// each writes a list with a line for each file.
func (t *fileText) each(files []string, text func(file string) string) {
	for i, file := range files {
		if i > 0 {
			t.WriteString(",")
		}
		t.WriteString("\n    " + text(file))
	}
}

// host returns the server of buckets without its scheme.
func (t *fileText) host() (host string, secure, ok bool) {
	if t.Endpoint == "" {
		return "", false, false
	}
	host, insecure := strings.CutPrefix(t.Endpoint, "http://")
	return strings.TrimRight(strings.TrimPrefix(host, "https://"), "/"), !insecure, true
}

// polars writes lazy frames. Folders above the outputs that look like key=value may differ.
func (t *fileText) polars() {
	t.WriteString("import polars\n\n")
	options := ""
	if t.bucket() {
		var pairs []string
		pair := func(key, value string) { pairs = append(pairs, strconv.Quote(key)+": "+python(value)) }
		if host, secure, ok := t.host(); ok && secure {
			pair("aws_endpoint_url", "https://"+host)
		} else if ok {
			pair("aws_endpoint_url", "http://"+host)
			pair("aws_allow_http", "true")
		}
		if t.Region != "" {
			pair("aws_region", t.Region)
		}
		options = ", storage_options=options"
		fmt.Fprintf(t, "options = {%s}\n\n", strings.Join(pairs, ", "))
	}
	fmt.Fprintf(t, polarsScan, options)
	for i := range t.Tables {
		table := &t.Tables[i]
		fmt.Fprintf(t, "%s = polars.concat([", table.Table)
		for _, p := range t.parts(table) {
			t.WriteString("\n  scan([")
			t.each(p.files, func(file string) string { return python(p.root + "/" + file) })
			fmt.Fprintf(t, "]%s),", wideOf(table))
		}
		t.WriteString("\n], how=\"diagonal\")\n")
	}
}

// polarsScan is a function that opens files, of which some may have coordinates of float32, and
// others of float64.
const polarsScan = `
def scan(files, wide=()):
    schema = polars.scan_parquet(files[:1], hive_partitioning=True, glob=False%[1]s).collect_schema()
    schema.update((name, polars.Float64) for name in wide)
    return polars.scan_parquet(files, hive_partitioning=True, glob=False, schema=schema,
                               cast_options=polars.ScanCastOptions(float_cast="upcast")%[1]s)


`

// wideOf returns the argument that names the columns of a table whose type differs from file to
// file.
func wideOf(table *TableFileList) string {
	if table.Table != tables.Points {
		return ""
	}
	return `, wide=("x", "y", "z")`
}

// spark writes data frames, which are views of SQL, too.
func (t *fileText) spark() {
	if t.bucket() {
		t.line("Spark reads buckets with the package org.apache.hadoop:hadoop-aws and its settings fs.s3a.*.")
	}
	t.WriteString(sparkLoad)
	if slices.ContainsFunc(t.Tables, func(l TableFileList) bool { return l.Table == tables.Points }) {
		t.line("The coordinates of points are encoded as BYTE_STREAM_SPLIT, which Spark's vectorized reader refuses.")
		t.WriteString("spark.conf.set(\"spark.sql.parquet.enableVectorizedReader\", \"false\")\n")
	}
	for i := range t.Tables {
		table := &t.Tables[i]
		fmt.Fprintf(t, "%s = ", table.Table)
		for k, p := range t.parts(table) {
			if k > 0 {
				t.WriteString(".unionByName(\n  ")
			}
			root := hadoop(p.root) + "/" + table.Table
			fmt.Fprintf(t, "load(%s, [", python(root))
			t.each(p.files, func(file string) string { return python(hadoopGlob.Replace(hadoop(p.root) + "/" + file)) })
			fmt.Fprintf(t, "]%s)", wideOf(table))
			if k > 0 {
				t.WriteString(", allowMissingColumns=True)")
			}
		}
		fmt.Fprintf(t, "\n%s.createOrReplaceTempView(%q)\n", table.Table, table.Table)
	}
}

// sparkLoad is a function that opens files of one table, as polarsScan does.
const sparkLoad = `from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

spark = SparkSession.builder.getOrCreate()


def load(root, files, wide=()):
    reader = spark.read.option("basePath", root)
    fields = reader.parquet(files[0]).schema.fields
    fields = [StructField(f.name, DoubleType() if f.name in wide else f.dataType) for f in fields]
    return reader.schema(StructType(fields)).parquet(*files)


`

// hadoop returns an address as Hadoop has it.
func hadoop(root string) string {
	if rest, ok := strings.CutPrefix(root, "s3://"); ok {
		return "s3a://" + rest
	}
	if strings.HasPrefix(root, "/") {
		return "file://" + root
	}
	return root
}

// hadoopGlob makes a path a glob that matches it alone.
var hadoopGlob = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// python returns text as a literal of Python.
func python(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, "\\x%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
