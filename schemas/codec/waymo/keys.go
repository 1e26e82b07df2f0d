package waymo

import (
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// Columns of the keys.
const (
	keyContext = "key.segment_context_name"
	keyTime    = "key.frame_timestamp_micros"
	keyLaser   = "key.laser_name"
)

// key names a row of the components of a segment.
type key struct {
	micros int64
	laser  Laser
}

// ranks returns the position of each row's frame in time; -1 for rows that are not needed.
func ranks(keys []key, micros []int64, lasers LaserSet) []int {
	rank := make([]int, len(keys))
	for row, k := range keys {
		at, ok := slices.BinarySearch(micros, k.micros)
		if !ok || !lasers.Has(k.laser) {
			at = -1
		}
		rank[row] = at
	}
	return rank
}

// byKey returns the row of each key; rows of unknown lasers have none.
func byKey(keys []key) (map[key]int, *codec.Error) {
	rows := make(map[key]int, len(keys))
	for row, k := range keys {
		if k.laser == Unknown {
			continue
		}
		if old, ok := rows[k]; ok {
			return nil, codec.Errorf(codec.Duplicate, -1, "rows %d and %d both hold laser %s of the frame at %d",
				old, row,
				k.laser, k.micros)
		}
		rows[k] = row
	}
	return rows, nil
}

// readKeys returns the key of each row, and the segment, which is that of all rows. A
// component without a laser has keys without a laser.
func readKeys(f *parquetfile.File) (keys []key, context string, err *codec.Error) {
	if err := checkRows(f); err != nil {
		return nil, "", err
	}
	keys = make([]key, f.NumRows())
	names, err := findColumn(f, keyContext)
	if err != nil {
		return nil, "", err
	}
	if names != nil && !names.list && names.kind == parquet.ByteArray {
		context, err = names.only()
	}
	if err != nil {
		return nil, "", err
	}
	for _, c := range []struct {
		name string
		set  func(*key, parquet.Value) bool
	}{{keyTime, func(k *key, v parquet.Value) bool {
		var ok bool
		k.micros, ok = integer(v)
		return ok && k.micros > math.MinInt64/1000 && k.micros < math.MaxInt64/1000
	}}, {keyLaser, func(k *key, v parquet.Value) bool {
		k.laser = laserOf(v)
		return !v.IsNull()
	}}} {
		found, err := findColumn(f, c.name)
		if found == nil && err == nil && c.name == keyLaser {
			continue
		}
		if err == nil && found == nil {
			err = codec.Errorf(codec.Missing, -1, "there is no column %s", c.name)
		}
		if err == nil && found.list {
			err = codec.Errorf(codec.BadType, -1, "column %s is a list", c.name)
		}
		if err == nil {
			err = found.each(func(row int, v parquet.Value, _ bool) *codec.Error {
				if !c.set(&keys[row], v) {
					return codec.Errorf(codec.BadValue, -1, "row %d, column %s: %.100s is no key", row, c.name, v)
				}
				return nil
			})
		}
		if err != nil {
			return nil, "", err
		}
	}
	return keys, context, nil
}

// only returns the text that all rows of a column have.
func (c *column) only() (text string, err *codec.Error) {
	err = c.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		switch {
		case row == 0:
			text = string(v.ByteArray())
		case string(v.ByteArray()) != text:
			return codec.Errorf(codec.BadValue, -1, "row %d: the segment is %.100q, in row 0 %.100q", row,
				v.ByteArray(), text)
		}
		return nil
	})
	return text, err
}

// integer returns v as one. Writers that have met a missing value store integers as floats.
func integer(v parquet.Value) (int64, bool) {
	if v.IsNull() {
		return 0, false
	}
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32()), true
	case parquet.Int64:
		return v.Int64(), true
	case parquet.Double:
		d := v.Double()
		return int64(d), d == math.Trunc(d) && math.Abs(d) < 1<<53
	}
	return 0, false
}

// laserOf returns the laser that v names, by number or by text.
func laserOf(v parquet.Value) Laser {
	if v.Kind() == parquet.ByteArray {
		return ParseLaser(string(v.ByteArray()))
	}
	if n, ok := integer(v); ok && n > 0 && n < int64(numLasers) {
		return Laser(n)
	}
	return Unknown
}
