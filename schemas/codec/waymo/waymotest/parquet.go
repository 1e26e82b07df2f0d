package waymotest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// Files says how the components of version 2 are written.
type Files struct {
	Frames    int
	GroupRows int            // rows of a row group of components lidar and lidar_pose
	Shuffle   bool           // rows of each component in another order
	Item      string         // name of the elements of lists; empty: element
	Single    bool           // matrices are float32
	Double    bool           // values of images are float64
	Dictated  bool           // values of images are encoded by a dictionary
	Names     bool           // lasers are texts, TOP
	Codec     compress.Codec // nil: not compressed
	PageBytes int            // 0: 1 MiB
	Version   int            // of data pages; 0: 1
	// Row says that a row of component lidar is left out.
	Without func(frame, laser int) bool
}

// Components are the names of the components that WriteFiles writes.
var Components = []string{"lidar", "lidar_calibration", "lidar_pose", "vehicle_pose"}

var laserTexts = []string{"UNKNOWN", "TOP", "FRONT", "SIDE_LEFT", "SIDE_RIGHT", "REAR"}

// WriteFiles writes each component to the writer that open returns.
func (s *Scene) WriteFiles(o Files, open func(component string) (io.WriteCloser, error)) error {
	for _, write := range []func(Files, func(string) (io.WriteCloser, error)) error{s.writeLiDAR, s.writeCalibration,
		s.writePose, s.writeVehiclePose} {
		if err := write(o, open); err != nil {
			return err
		}
	}
	return nil
}

// at is a row of a component: a laser in a frame.
type at struct{ frame, laser int }

func (o *Files) order(rows []at) []at {
	if o.Shuffle {
		random := rand.New(rand.NewPCG(7, uint64(len(rows))))
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	return rows
}

func (o *Files) laser() parquet.Node {
	if o.Names {
		return parquet.Optional(parquet.String())
	}
	return parquet.Optional(parquet.Int(8))
}

func (o *Files) laserValue(laser int) any {
	if o.Names {
		return laserTexts[laser]
	}
	return int32(laser)
}

func (o *Files) list(of parquet.Node) parquet.Node {
	item := o.Item
	if item == "" {
		item = "element"
	}
	list := parquet.Group{"list": parquet.Repeated(parquet.Group{item: parquet.Optional(of)})}
	return parquet.Optional(annotated{list, parquet.List(of).Type()})
}

// annotated is a group with the type of a list.
type annotated struct {
	parquet.Group
	is parquet.Type
}

// Type returns the type of a list.
func (a annotated) Type() parquet.Type { return a.is }

func (o *Files) image() parquet.Node {
	node := parquet.Leaf(parquet.FloatType)
	if o.Double {
		node = parquet.Leaf(parquet.DoubleType)
	}
	if o.Dictated {
		node = parquet.Encoded(node, &parquet.RLEDictionary)
	}
	return o.list(node)
}

func (o *Files) matrix() parquet.Node {
	if o.Single {
		return o.list(parquet.Leaf(parquet.FloatType))
	}
	return o.list(parquet.Leaf(parquet.DoubleType))
}

const (
	contextKey = "key.segment_context_name"
	timeKey    = "key.frame_timestamp_micros"
	laserKey   = "key.laser_name"
)

func (s *Scene) writeLiDAR(o Files, open func(string) (io.WriteCloser, error)) error {
	const column = "[LiDARComponent].range_image_return"
	t, err := newTable(open, "lidar", o, parquet.Group{"index": parquet.Optional(parquet.String()),
		contextKey: parquet.Optional(parquet.String()), timeKey: parquet.Optional(parquet.Int(64)), laserKey: o.laser(),
		column + "1.values": o.image(), column + "1.shape": o.list(parquet.Int(32)),
		column + "2.values": o.image(), column + "2.shape": o.list(parquet.Int(32))})
	if err != nil {
		return err
	}
	var rows []at
	for frame := range o.Frames {
		for _, laser := range []int{3, 1, 5, 2, 4} {
			if o.Without == nil || !o.Without(frame, laser) {
				rows = append(rows, at{frame, laser})
			}
		}
	}
	for _, r := range o.order(rows) {
		l := &s.Lasers[r.laser-1]
		sw := s.Sweep(r.frame, l)
		shape := []int32{int32(l.H), int32(l.W), 4}
		row := map[string]any{"index": fmt.Sprintf("%s;%d;%d", s.Context, s.Time(r.frame), r.laser),
			contextKey: s.Context,
			timeKey:    s.Time(r.frame), laserKey: o.laserValue(r.laser), column + "1.values": sw.Returns[0],
			column + "1.shape": shape, column + "2.values": sw.Returns[1], column + "2.shape": shape}
		if r.laser == 4 && r.frame%2 == 1 { // no second return
			row[column+"2.values"], row[column+"2.shape"] = nil, nil
		}
		if err := t.write(row); err != nil {
			return err
		}
	}
	return t.close()
}

// HasReturn reports whether a laser has that return in component lidar.
func (Files) HasReturn(frame, laser, echo int) bool { return echo == 1 || laser != 4 || frame%2 == 0 }

func (s *Scene) writePose(o Files, open func(string) (io.WriteCloser, error)) error {
	const column = "[LiDARPoseComponent].range_image_return1"
	t, err := newTable(open, "lidar_pose", o, parquet.Group{contextKey: parquet.Optional(parquet.String()),
		timeKey: parquet.Optional(parquet.Int(64)), laserKey: o.laser(), column + ".values": o.image(),
		column + ".shape": o.list(parquet.Int(32))})
	if err != nil {
		return err
	}
	var rows []at
	for frame := range o.Frames {
		rows = append(rows, at{frame, 1})
	}
	for _, r := range o.order(rows) {
		l := &s.Lasers[r.laser-1]
		values, _ := s.pixelPoses(r.frame, l)
		if err := t.write(map[string]any{contextKey: s.Context, timeKey: s.Time(r.frame),
			laserKey:           o.laserValue(r.laser),
			column + ".values": values, column + ".shape": []int32{int32(l.H), int32(l.W), 6}}); err != nil {
			return err
		}
	}
	return t.close()
}

func (s *Scene) writeVehiclePose(o Files, open func(string) (io.WriteCloser, error)) error {
	const column = "[VehiclePoseComponent].world_from_vehicle.transform"
	t, err := newTable(open, "vehicle_pose", o, parquet.Group{contextKey: parquet.Optional(parquet.String()),
		timeKey: parquet.Optional(parquet.Int(64)), column: o.matrix()})
	if err != nil {
		return err
	}
	var rows []at
	for frame := range o.Frames {
		rows = append(rows, at{frame, 0})
	}
	for _, r := range o.order(rows) {
		world := s.World(r.frame, 0)
		if err := t.write(map[string]any{contextKey: s.Context, timeKey: s.Time(r.frame),
			column: world[:]}); err != nil {
			return err
		}
	}
	return t.close()
}

func (s *Scene) writeCalibration(o Files, open func(string) (io.WriteCloser, error)) error {
	const column = "[LiDARCalibrationComponent]."
	number := parquet.Optional(parquet.Leaf(parquet.DoubleType))
	t, err := newTable(open, "lidar_calibration", o, parquet.Group{contextKey: parquet.Optional(parquet.String()),
		laserKey: o.laser(), column + "extrinsic.transform": o.matrix(), column + "beam_inclination.min": number,
		column + "beam_inclination.max":    number,
		column + "beam_inclination.values": o.list(parquet.Leaf(parquet.DoubleType))})
	if err != nil {
		return err
	}
	for _, laser := range []int{2, 5, 3, 4, 1} {
		l := &s.Lasers[laser-1]
		row := map[string]any{contextKey: s.Context, laserKey: o.laserValue(laser),
			column + "extrinsic.transform": l.Extrinsic[:], column + "beam_inclination.min": l.Min,
			column + "beam_inclination.max": l.Max}
		if l.Inclinations != nil {
			row[column+"beam_inclination.values"] = l.Inclinations
		}
		if err := t.write(row); err != nil {
			return err
		}
	}
	return t.close()
}

// table writes rows of columns by name.
type table struct {
	out    io.WriteCloser
	w      *parquet.GenericWriter[any]
	names  []string // of the leaves' top-level fields
	leaves []parquet.LeafColumn
	group  int
	rows   int
	row    parquet.Row // memory for the next row
}

func newTable(open func(string) (io.WriteCloser, error), name string, o Files, group parquet.Group) (*table, error) {
	out, err := open(name)
	if err != nil {
		return nil, err
	}
	schema := parquet.NewSchema("schema", group)
	page, version := o.PageBytes, o.Version
	if page == 0 {
		page = 1 << 20
	}
	if version == 0 {
		version = 1
	}
	options := []parquet.WriterOption{schema, parquet.PageBufferSize(page), parquet.DataPageVersion(version)}
	if o.Codec != nil {
		options = append(options, parquet.Compression(o.Codec))
	}
	t := &table{out: out, w: parquet.NewGenericWriter[any](out, options...), group: o.GroupRows}
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		t.names, t.leaves = append(t.names, path[0]), append(t.leaves, leaf)
	}
	return t, nil
}

func (t *table) write(fields map[string]any) error {
	t.row = t.row[:0]
	for i, leaf := range t.leaves {
		t.row = appendValues(t.row, fields[t.names[i]], leaf)
	}
	if _, err := t.w.WriteRows([]parquet.Row{t.row}); err != nil {
		return err
	}
	if t.rows++; t.group > 0 && t.rows%t.group == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *table) close() error {
	if err := t.w.Close(); err != nil {
		return err
	}
	return t.out.Close()
}

// appendValues appends a field's value or list.
func appendValues(row parquet.Row, field any, leaf parquet.LeafColumn) parquet.Row {
	kind := leaf.Node.Type().Kind()
	add := func(v parquet.Value, i int) {
		row = append(row, v.Level(min(i, 1)*leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel, leaf.ColumnIndex))
	}
	number := func(v float64) parquet.Value {
		if kind == parquet.Float {
			return parquet.FloatValue(float32(v))
		}
		return parquet.DoubleValue(v)
	}
	switch v := field.(type) {
	case nil:
		row = append(row, parquet.Value{}.Level(0, 0, leaf.ColumnIndex))
	case string:
		add(parquet.ByteArrayValue([]byte(v)), 0)
	case int32:
		add(parquet.Int32Value(v), 0)
	case int64:
		add(parquet.Int64Value(v), 0)
	case float64:
		add(number(v), 0)
	case []int32:
		for i, n := range v {
			add(parquet.Int32Value(n), i)
		}
	case []float32:
		row = slices.Grow(row, len(v))
		for i, n := range v {
			add(number(float64(n)), i)
		}
	case []float64:
		for i, n := range v {
			add(number(n), i)
		}
	}
	return row
}
