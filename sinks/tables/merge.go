package tables

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// offsetsKey is the key of the range of offsets in a file's footer.
const offsetsKey = "entropipe.offsets"

// MergeFooters returns the key-value metadata of a file that holds the rows of two files of
// one table and folder: the pairs that both have alike, and of key geo the types and the box of
// both. It leaves out entropipe.offsets, which Offsets makes. a may be the result of an earlier
// call.
func MergeFooters(a, b []format.KeyValue) (merged []format.KeyValue, err error) {
	values := make(map[string]string, len(b))
	for _, kv := range b {
		values[kv.Key] = kv.Value
	}
	for _, kv := range a {
		other, both := values[kv.Key]
		switch {
		case !both || kv.Key == offsetsKey:
			continue
		case kv.Key == "geo" && other != kv.Value:
			if kv.Value, err = mergeGeo(kv.Value, other); err != nil {
				return nil, err
			}
		case other != kv.Value:
			continue
		}
		merged = append(merged, kv)
	}
	return merged, nil
}

// Offsets returns the pair that says which offsets [start, end) the rows of a file have.
func Offsets(start, end int64) format.KeyValue {
	return format.KeyValue{Key: offsetsKey, Value: fmt.Sprintf("%d-%d", start, end)}
}

// mergeGeo merges two values of key geo.
func mergeGeo(a, b string) (string, error) {
	var both geoFile
	for _, text := range []string{a, b} {
		var parsed struct {
			Columns map[string]geoColumn `json:"columns"`
		}
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			return "", fmt.Errorf("key geo of a footer: %w", err)
		}
		if err := both.merge(parsed.Columns["geometry"]); err != nil {
			return "", err
		}
	}
	return both.metadata(), nil
}

// merge adds the types and the box of another file.
func (f *geoFile) merge(c geoColumn) error {
	if len(c.GeometryTypes) == 0 {
		return nil
	}
	if len(c.BBox) != 4 {
		return fmt.Errorf("key geo of a footer: a box of %d numbers", len(c.BBox))
	}
	b := bbox{c.BBox[0], c.BBox[1], c.BBox[2], c.BBox[3]}
	if f.point || f.line || f.polygon {
		b = bbox{math.Min(b.XMin, f.box.XMin), math.Min(b.YMin, f.box.YMin), math.Max(b.XMax, f.box.XMax),
			math.Max(b.YMax, f.box.YMax)}
	}
	f.box = b
	for _, name := range c.GeometryTypes {
		switch name {
		case "Point":
			f.point = true
		case "LineString":
			f.line = true
		case "Polygon":
			f.polygon = true
		default:
			return fmt.Errorf("key geo of a footer: geometries of the unknown type %q", name)
		}
	}
	return nil
}
