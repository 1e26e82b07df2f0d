package foxglove

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/schemas/codec"
)

// DecodeJSON is Decode for a PointCloud in JSON, whose data are base64. The timestamp is
// {"sec", "nsec"}, or a text of RFC 3339 as Protobuf writes it; the type of a field is its
// number, or its name.
func DecodeJSON(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if len(value) == 0 {
		return codec.Errorf(codec.Empty, -1, "the message is empty")
	}
	var in cloudJSON
	if err := json.Unmarshal(value, &in); err != nil {
		return faultJSON(err)
	}
	if len(in.Fields) > maxFields {
		return codec.Errorf(codec.Corrupt, -1, "the cloud has more than %d fields", maxFields)
	}
	m := PointCloud{FrameID: in.FrameID, Stride: in.Stride, Data: in.Data,
		Pose: Pose{Position: in.Pose.Position, Orientation: in.Pose.Orientation}}
	ns, fault := timeOf(in.Timestamp.sec, in.Timestamp.nsec)
	if fault != nil {
		return fault
	}
	m.TimeNs = ns
	for _, f := range in.Fields {
		m.Fields = append(m.Fields, Field{Name: f.Name, Offset: f.Offset, Type: NumericType(f.Type)})
	}
	return m.unpack(c, limit)
}

type cloudJSON struct {
	Timestamp timeJSON `json:"timestamp"`
	FrameID   string   `json:"frame_id"`
	Pose      struct {
		Position    Vector     `json:"position"`
		Orientation Quaternion `json:"orientation"`
	} `json:"pose"`
	Stride uint32 `json:"point_stride"`
	Fields []struct {
		Name   string   `json:"name"`
		Offset uint32   `json:"offset"`
		Type   typeJSON `json:"type"`
	} `json:"fields"`
	Data []byte `json:"data"`
}

// faultJSON says where the text is wrong.
func faultJSON(err error) error {
	switch err := err.(type) {
	case *json.SyntaxError:
		reason := codec.Corrupt
		if strings.Contains(err.Error(), "unexpected end") {
			reason = codec.Truncated
		}
		return codec.Errorf(reason, int(err.Offset), "the message is no JSON: %v", err)
	case *json.UnmarshalTypeError:
		return codec.Errorf(codec.BadType, int(err.Offset), "%s is a %s, which is no %s", err.Field, err.Value,
			err.Type)
	}
	return codec.Errorf(codec.BadValue, -1, "%v", err)
}

// timeJSON is a timestamp.
type timeJSON struct{ sec, nsec int64 }

func (t *timeJSON) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return codec.Errorf(codec.BadValue, -1, "timestamp %.60q is no time", s)
		}
		t.sec, t.nsec = at.Unix(), int64(at.Nanosecond())
		return nil
	}
	var in struct {
		Sec  int64 `json:"sec"`
		Nsec int64 `json:"nsec"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	t.sec, t.nsec = in.Sec, in.Nsec
	return nil
}

// typeJSON is a NumericType.
type typeJSON uint32

// typeNames are the names of the types, by number.
var typeNames = []string{"UNKNOWN", "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "FLOAT64"}

func (t *typeJSON) UnmarshalJSON(b []byte) error {
	if name, err := strconv.Unquote(string(b)); err == nil {
		*t = typeJSON(max(0, slices.Index(typeNames, name)))
		return nil
	}
	return json.Unmarshal(b, (*uint32)(t))
}
