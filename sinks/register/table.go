package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"entropipe/sinks/record"
)

// byTopic is the folder key that every table has, besides those of the output.
const byTopic = "topic"

// rejects and messages are the tables whose files have no folder key but the topic.
const (
	rejects  = "rejects"
	messages = "messages"
)

// points is the table whose coordinates have 32 or 64 bits: its Iceberg columns have 64, to
// which readers promote the others.
const points = "points"

// folderKeys returns the folder keys of a table's files, in order.
func folderKeys(store *record.Store, name string) []string {
	if name == rejects || name == messages {
		return []string{byTopic}
	}
	return append(append([]string{}, store.PartitionBy...), byTopic)
}

// schemaOf returns the Iceberg schema of a table from the footer of one of its files, and the
// partition spec: the file's columns, then the folder keys as strings, each the source of an
// identity partition. Geometries are binary.
func schemaOf(name string, keys []string, meta *metadata.FileMetaData) (*iceberg.Schema, *iceberg.PartitionSpec,
	error) {
	fields, err := columnsOf(name, meta)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		fields = append(fields, iceberg.NestedField{ID: -1, Name: key, Type: iceberg.PrimitiveTypes.String})
	}
	schema, err := iceberg.AssignFreshSchemaIDs(iceberg.NewSchema(0, fields...), nil)
	if err != nil {
		return nil, nil, err
	}
	var parts []iceberg.PartitionField
	for i, key := range keys {
		source, _ := schema.FindFieldByName(key)
		parts = append(parts, iceberg.PartitionField{SourceIDs: []int{source.ID}, FieldID: 1000 + i, Name: key,
			Transform: iceberg.IdentityTransform{}})
	}
	spec := iceberg.NewPartitionSpec(parts...)
	return schema, &spec, nil
}

// columnsOf returns the columns of a file. Their ids are without meaning.
func columnsOf(name string, meta *metadata.FileMetaData) ([]iceberg.NestedField, error) {
	arrow, err := pqarrow.FromParquet(meta.Schema, nil, nil)
	if err != nil {
		return nil, err
	}
	schema, err := table.ArrowSchemaToIcebergWithFreshIDs(arrow, false)
	if err != nil {
		return nil, err
	}
	fields := schema.Fields()
	for i := range fields {
		if name == points && fields[i].Type == iceberg.PrimitiveTypes.Float32 {
			fields[i].Type = iceberg.PrimitiveTypes.Float64
		}
	}
	return fields, nil
}

// checkColumns returns an error if a table lacks a column of a file, or has it with another
// type, or needs one that the file does not have.
func checkColumns(t *table.Table, name, file string, meta *metadata.FileMetaData, keys []string) error {
	fields, err := columnsOf(name, meta)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	has := map[string]bool{}
	for _, f := range fields {
		has[f.Name] = true
		column, found := t.Schema().FindFieldByName(f.Name)
		if !found {
			return configError("namespace", "table %s has no column %s, which %s has: another version made the "+
				"table, or another output with other folders; name another --namespace", name, f.Name, file)
		}
		if shapeOf(column.Type) != shapeOf(f.Type) {
			return configError("namespace", "column %s of table %s is %s, and in %s it is %s; name another --namespace",
				f.Name, name, column.Type, file, f.Type)
		}
	}
	for _, key := range keys {
		has[key] = true
	}
	for _, column := range t.Schema().Fields() {
		if column.Required && !has[column.Name] {
			return configError("namespace", "table %s requires column %s, which %s lacks; name another --namespace",
				name, column.Name, file)
		}
	}
	return nil
}

// shapeOf describes a type without the ids of its fields.
func shapeOf(t iceberg.Type) string {
	switch t := t.(type) {
	case *iceberg.StructType:
		text := "struct<"
		for _, f := range t.FieldList {
			text += f.Name + ":" + shapeOf(f.Type) + ","
		}
		return text + ">"
	case *iceberg.ListType:
		return "list<" + shapeOf(t.Element) + ">"
	}
	return t.String()
}

// checkSpec returns an error unless a table is partitioned by the folder keys.
func checkSpec(t *table.Table, name string, keys []string) error {
	spec := t.Spec()
	var by []string
	for _, field := range spec.Fields() {
		by = append(by, field.Name)
	}
	if fmt.Sprint(by) != fmt.Sprint(keys) {
		return configError("namespace", "table %s is partitioned by %v, and the files of the output by %v; name "+
			"another --namespace", name, by, keys)
	}
	return nil
}

// openTable loads a table of the catalog; nil: there is none. An error: another program made it.
func (r *registrar) openTable(ctx context.Context, name string) (*table.Table, error) {
	t, err := r.catalog.LoadTable(ctx, r.identifier(name))
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", name, err)
	}
	if t.Properties()[tableKey] != name {
		return nil, configError("namespace", "there is a table %s that register did not make (its property %s is %q); "+
			"name another --namespace", name, tableKey, t.Properties()[tableKey])
	}
	return t, nil
}

// makeTable creates a table with the columns of a file. Another process may make it at the same
// time: then its table is taken.
func (r *registrar) makeTable(ctx context.Context, name string, f *footer) (*table.Table, error) {
	schema, spec, err := schemaOf(name, folderKeys(&r.store, name), f.meta)
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", f.file.Path, err)
	}
	_, err = r.catalog.CreateTable(ctx, r.identifier(name), schema, catalog.WithPartitionSpec(spec),
		catalog.WithProperties(iceberg.Properties{
			tableKey:         name,
			schemaKey:        strconv.Itoa(r.store.Schema),
			"format-version": "2",
		}))
	made, loadErr := r.openTable(ctx, name) // after a lost answer, too
	if loadErr != nil {
		return nil, loadErr
	}
	if made == nil {
		if err == nil || errors.Is(err, catalog.ErrTableAlreadyExists) { // it was dropped meanwhile
			err = catalog.ErrNoSuchTable
		}
		return nil, fmt.Errorf("make table %s: %w", name, err)
	}
	if err == nil {
		r.log.Info("table made", "table", r.shown(name), "location", made.Location())
	}
	return made, nil
}
