package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"entropipe/ingest/replay"
	"entropipe/models/plainfile"
)

// Archived is a Source that a backfill reads.
type Archived interface {
	Source

	// Archive returns the archive that the flags name. It reads none of its files yet.
	Archive(o Options) (replay.Archive, error)

	// Where returns the paths of the command line.
	Where() []string

	// Settings returns the format and the flags that decide messages, but for paths. Defaults
	// are left out, so that a flag that is added later changes no settings.
	Settings() (map[string]string, error)
}

// settingTag marks the flags that decide messages: setting:"yes".
const settingTag = "setting"

// settingsOf returns the format and the marked flags of structs that differ from their
// defaults. A list is a set: its order changes nothing.
func settingsOf(format string, structs ...any) map[string]string {
	all := map[string]string{"format": format}
	for _, s := range structs {
		addSettings(all, reflect.Indirect(reflect.ValueOf(s)))
	}
	return all
}

func addSettings(to map[string]string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			addSettings(to, v.Field(i))
		}
		if f.Tag.Get(settingTag) != "yes" {
			continue
		}
		usual, has := f.Tag.Lookup("default")
		if text := settingText(v.Field(i)); text != usual && (has || !v.Field(i).IsZero()) {
			to[flagName(f)] = text
		}
	}
}

func settingText(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.UTC().Format(time.RFC3339Nano)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var elements []string
	for i := range v.Len() {
		elements = append(elements, fmt.Sprint(v.Index(i).Interface()))
	}
	slices.Sort(elements)
	return strings.Join(slices.Compact(elements), ",")
}

// flagName returns the name that kong gives to a field's flag.
func flagName(f reflect.StructField) string {
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Settings returns the names that are not the source's own.
func (n *Names) Settings() map[string]string {
	all := settingsOf("", n)
	delete(all, "format")
	return all
}

// Archive returns the archive of the paths.
func (c *Files) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *Files) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *Files) Settings() (map[string]string, error) { return settingsOf(c.Format, c), nil }

// Archive returns the archive of the folder.
func (c *KITTI) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the folder.
func (c *KITTI) Where() []string { return []string{c.Dir} }

// Settings returns what decides messages.
func (c *KITTI) Settings() (map[string]string, error) { return settingsOf(replay.FormatKITTI, c), nil }

// Archive returns the archive of the scenes.
func (c *NuScenes) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *NuScenes) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *NuScenes) Settings() (map[string]string, error) {
	return settingsOf(replay.FormatNuScenes, c), nil
}

// Archive returns the archive of the logs.
func (c *Argoverse2) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *Argoverse2) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *Argoverse2) Settings() (map[string]string, error) {
	return settingsOf(replay.FormatArgoverse2, c), nil
}

// Archive returns the archive of the segments.
func (c *Waymo) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *Waymo) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *Waymo) Settings() (map[string]string, error) { return settingsOf(replay.FormatWaymo, c), nil }

// Archive returns the archive of the recordings.
func (c *MCAP) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *MCAP) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *MCAP) Settings() (map[string]string, error) { return settingsOf(replay.FormatMCAP, c), nil }

// Archive returns the archive of the bags.
func (c *Rosbag) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the paths.
func (c *Rosbag) Where() []string { return c.Paths }

// Settings returns what decides messages.
func (c *Rosbag) Settings() (map[string]string, error) {
	return settingsOf(replay.FormatRosbag, c), nil
}

// Where returns the paths.
func (c *Clouds) Where() []string { return c.Paths }

// Archive returns the archive of the files.
func (c *PCD) Archive(o Options) (replay.Archive, error) { return c.replay(replay.PCD, o).Archive() }

// Settings returns what decides messages.
func (c *PCD) Settings() (map[string]string, error) { return settingsOf("pcd", c), nil }

// Archive returns the archive of the files.
func (c *PLY) Archive(o Options) (replay.Archive, error) { return c.replay(replay.PLY, o).Archive() }

// Settings returns what decides messages.
func (c *PLY) Settings() (map[string]string, error) { return settingsOf("ply", c), nil }

// Archive returns the archive of the files.
func (c *LAS) Archive(o Options) (replay.Archive, error) { return c.replay(replay.LAS, o).Archive() }

// Settings returns what decides messages.
func (c *LAS) Settings() (map[string]string, error) { return settingsOf("las", c), nil }

// Where returns the paths.
func (c *Tables) Where() []string { return c.Paths }

// Archive returns the archive of the files.
func (c *CSV) Archive(o Options) (replay.Archive, error) {
	return c.replay(replay.FormatCSV, o).Archive()
}

// Settings returns what decides messages.
func (c *CSV) Settings() (map[string]string, error) { return settingsOf(replay.FormatCSV, c), nil }

// Archive returns the archive of the files.
func (c *Parquet) Archive(o Options) (replay.Archive, error) {
	return c.table(o).Archive()
}

// Settings returns what decides messages.
func (c *Parquet) Settings() (map[string]string, error) {
	return settingsOf(replay.FormatParquet, c), nil
}

// Archive returns the archive of the files.
func (c *Arrow) Archive(o Options) (replay.Archive, error) {
	return c.replay(replay.FormatArrow, o).Archive()
}

// Settings returns what decides messages.
func (c *Arrow) Settings() (map[string]string, error) { return settingsOf(replay.FormatArrow, c), nil }

// Archive returns the archive of the drawings.
func (c *QuickDraw) Archive(o Options) (replay.Archive, error) { return c.replay(o).Archive() }

// Where returns the files.
func (c *QuickDraw) Where() []string { return c.Files }

// Settings returns what decides messages.
func (c *QuickDraw) Settings() (map[string]string, error) {
	return settingsOf(replay.FormatQuickDraw, c), nil
}

// Archive returns the archive of the texts or ids. It opens the tokenizer and the trace.
func (c *Tokens) Archive(o Options) (replay.Archive, error) {
	t, err := c.replay(o)
	if err != nil {
		return nil, err
	}
	return t.Archive()
}

// Where returns the files.
func (c *Tokens) Where() []string { return c.Files }

// Settings returns what decides messages: of the tokenizer and the trace their content.
func (c *Tokens) Settings() (map[string]string, error) {
	all := settingsOf(replay.FormatTokens, c)
	if c.Tokenizer != "" {
		var t replay.Tokens
		if err := c.openTokenizer(&t); err != nil {
			return nil, err
		}
		all["tokenizer"] = t.Vocabulary.Tokenizer
		all["tokenizer-sha256"] = t.Vocabulary.SHA256
	}
	if c.Lengths == "" {
		return all, nil
	}
	sum, err := sumOf(c.Lengths)
	all["lengths-sha256"] = sum
	return all, err
}

// sumOf returns the SHA-256 of a file, in hex.
func sumOf(path string) (string, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
