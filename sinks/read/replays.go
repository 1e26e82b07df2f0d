package read

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// replays checks the records of replays.
func (v *verifier) replays(ctx context.Context) error {
	names, err := replayNames(ctx, v.store)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, n, _ := record.ParseReplayName(name)
		v.checked(checkRecords, 1)
		data, err := sinks.ReadRecord(ctx, v.store, name)
		format := 0
		if err == nil && n == 0 {
			var r *record.Replay
			if r, err = record.ParseReplay(name, data); err == nil {
				format = r.Format
			}
		} else if err == nil {
			var r *record.Replayed
			if r, err = record.ParseReplayed(name, data); err == nil {
				format = r.Format
			}
		}
		if err != nil {
			v.fault(checkRecords, name, "%v; no row is affected; without the record replay may send messages again "+
				"that it has sent", err)
			continue
		}
		v.oneFormat(name, format)
	}
	return nil
}

// replayNames lists the records of replays.
func replayNames(ctx context.Context, store sinks.Reader) (names []string, err error) {
	all, err := store.Names(ctx, record.ReplaysFolder)
	for _, base := range all {
		if name := path.Join(record.ReplaysFolder, base); err == nil {
			if _, _, ok := record.ParseReplayName(name); ok {
				names = append(names, name)
			}
		}
	}
	return names, err
}

// Replays tells whether an output has lists of messages that were sent again.
func Replays(ctx context.Context, store sinks.Reader) (bool, error) {
	names, err := replayNames(ctx, store)
	for _, name := range names {
		if _, n, _ := record.ParseReplayName(name); n > 0 {
			return true, nil
		}
	}
	return false, err
}

// MendedSQL returns views of DuckDB over the views of SQL: replayed, a row for each message that a
// replay has sent to a topic, and rejects_not_mended. A reject is mended if a record that sends
// its message again has a row in frames or tokens of this output; of a reject of one frame, a
// row with its index. A record that was refused may be sent again, too. replays: the output has
// lists (Replays); without one no reject is mended. It returns "" without table rejects.
func MendedSQL(output string, tables []string, replays bool) string {
	root := filepath.ToSlash(filepath.Clean(output))
	if !slices.Contains(tables, "rejects") {
		return ""
	}
	if !replays {
		return "CREATE OR REPLACE VIEW rejects_not_mended AS SELECT * FROM rejects;\n"
	}
	rows := make([]string, 0, 2)
	for _, t := range tables {
		if t == "frames" || t == "tokens" {
			rows = append(rows, fmt.Sprintf("SELECT topic, \"partition\", \"offset\", \"index\" FROM %s", t))
		}
	}
	if len(rows) == 0 {
		rows = append(rows, "SELECT topic, \"partition\", \"offset\", \"index\" FROM rejects WHERE false")
	}
	columns := "{'folder': 'VARCHAR', 'sent': 'STRUCT(folder VARCHAR, \"partition\" INTEGER, \"offset\" BIGINT, " +
		"to_partition INTEGER, to_offset BIGINT)[]'}"
	var w strings.Builder
	fmt.Fprintf(&w, "CREATE OR REPLACE VIEW replayed AS SELECT DISTINCT s.folder AS topic, s.\"partition\", "+
		"s.\"offset\", to_topic, s.to_partition, s.to_offset\n"+
		"  FROM (SELECT folder AS to_topic, unnest(sent) AS s FROM read_json(%s, columns=%s, "+
		"maximum_object_size=%d));\n", quoteSQL(globOf(root)+"/"+record.ReplaysFolder+"/*.*.json"), columns,
		record.MaxSize)
	fmt.Fprintf(&w, `CREATE OR REPLACE VIEW rejects_not_mended AS
  WITH RECURSIVE again(topic, "partition", "offset", to_topic, to_partition, to_offset) AS (
    SELECT * FROM replayed
    UNION SELECT a.topic, a."partition", a."offset", b.to_topic, b.to_partition, b.to_offset
      FROM again a JOIN replayed b
        ON a.to_topic = b.topic AND a.to_partition = b."partition" AND a.to_offset = b."offset"),
  present AS (%s)
  SELECT r.* FROM rejects r WHERE NOT EXISTS (SELECT 1 FROM again a JOIN present p
    ON p.topic = a.to_topic AND p."partition" = a.to_partition AND p."offset" = a.to_offset
    WHERE a.topic = r.topic AND a."partition" = r."partition" AND a."offset" = r."offset"
      AND (r."index" < 0 OR p."index" = r."index"));
`, strings.Join(rows, " UNION ALL "))
	return w.String()
}
