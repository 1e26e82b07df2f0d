package tables

// The rows. Functions in frames.go, hulls.go, points.go, tokens.go and rejects.go write
// their columns in the order of the fields. The tags avoid types that readers
// misread: nanosecond timestamps (truncated by DuckDB, refused by Spark before 4), enum
// (binary in pyarrow), the geometry logical type (refused by Polars and older Arrow),
// unsigned integers, and a column that is also a folder key.

// keys begin the rows of all tables but triangles, points and rejects.
type keys struct {
	Sequence  string `parquet:"sequence,dict"`
	FrameID   int64  `parquet:"frame_id,delta"`
	Sensor    string `parquet:"sensor,dict"`
	TS        int64  `parquet:"ts,delta,timestamp(microsecond)"`
	TSNs      int64  `parquet:"ts_ns,delta"`
	Partition int32  `parquet:"partition,delta"`
	Offset    int64  `parquet:"offset,delta"`
	Index     int32  `parquet:"index,delta"`
}

// shortKeys begin the rows of triangles and points: the columns that join them to
// frames, and frame_id for reading.
type shortKeys struct {
	FrameID   int64 `parquet:"frame_id,delta"`
	Partition int32 `parquet:"partition,delta"`
	Offset    int64 `parquet:"offset,delta"`
	Index     int32 `parquet:"index,delta"`
}

type framesRow struct {
	keys
	NPoints          int32  `parquet:"n_points,delta"`
	NDropped         int32  `parquet:"n_dropped,delta"`
	StatusHull2D     string `parquet:"status_hull2d,optional,dict"`
	NHull2D          int32  `parquet:"n_hull2d,optional,delta"`
	Hull2DNs         int64  `parquet:"hull2d_ns,optional,delta"`
	StatusHull3D     string `parquet:"status_hull3d,optional,dict"`
	NHull3D          int32  `parquet:"n_hull3d,optional,delta"`
	Hull3DNs         int64  `parquet:"hull3d_ns,optional,delta"`
	StatusMaxima2D   string `parquet:"status_maxima2d,optional,dict"`
	NMaxima2D        int32  `parquet:"n_maxima2d,optional,delta"`
	Maxima2DNs       int64  `parquet:"maxima2d_ns,optional,delta"`
	StatusMaxima3D   string `parquet:"status_maxima3d,optional,dict"`
	NMaxima3D        int32  `parquet:"n_maxima3d,optional,delta"`
	Maxima3DNs       int64  `parquet:"maxima3d_ns,optional,delta"`
	StatusDelaunay2D string `parquet:"status_delaunay2d,optional,dict"`
	NDelaunay2D      int32  `parquet:"n_delaunay2d,optional,delta"`
	Delaunay2DNs     int64  `parquet:"delaunay2d_ns,optional,delta"`
	DrawingID        int64  `parquet:"drawing_id,optional,delta"`
	Label            string `parquet:"label,optional,dict"`
	Stage            string `parquet:"stage,optional,dict"`
	ModelSHA256      string `parquet:"model_sha256,optional,dict"`
	LatencyNs        int64  `parquet:"latency_ns,delta"`
	// Pose is sensor to world: 12 numbers, the upper three rows of the matrix.
	Pose []float64 `parquet:"pose,optional,list"`
}

type hullsRow struct {
	keys
	NPoints    int32   `parquet:"n_points,delta"`
	NHull      int32   `parquet:"n_hull,delta"`
	Area       float64 `parquet:"area"`
	Perimeter  float64 `parquet:"perimeter"`
	Geometry   []byte  `parquet:"geometry,optional"`
	BBox       *bbox   `parquet:"bbox,optional"`
	HullIdx    []int32 `parquet:"hull_idx,list" parquet-element:",delta"`
	ErrorBound float64 `parquet:"error_bound,optional"`
	Status     string  `parquet:"status,dict"`
}

type bbox struct {
	XMin float64 `parquet:"xmin"`
	YMin float64 `parquet:"ymin"`
	XMax float64 `parquet:"xmax"`
	YMax float64 `parquet:"ymax"`
}

type hulls3DRow struct {
	keys
	NPoints    int32   `parquet:"n_points,delta"`
	NHull      int32   `parquet:"n_hull,delta"`
	HullIdx    []int32 `parquet:"hull_idx,list" parquet-element:",delta"`
	Faces      []int32 `parquet:"faces,list" parquet-element:",delta"`
	Area       float64 `parquet:"area"`
	Volume     float64 `parquet:"volume"`
	ErrorBound float64 `parquet:"error_bound,optional"`
	Status     string  `parquet:"status,dict"`
}

type maximaRow struct {
	keys
	Directions string  `parquet:"directions,dict"`
	Idx        []int32 `parquet:"idx,list" parquet-element:",delta"`
	ErrorBound float64 `parquet:"error_bound,optional"`
}

type trianglesRow struct {
	shortKeys
	TriID int32 `parquet:"tri_id,delta"`
	V0    int32 `parquet:"v0,delta"`
	V1    int32 `parquet:"v1,delta"`
	V2    int32 `parquet:"v2,delta"`
}

type pointsRow struct {
	shortKeys
	PointIdx  int32   `parquet:"point_idx,delta"`
	X         float32 `parquet:"x,split"`
	Y         float32 `parquet:"y,split"`
	Z         float32 `parquet:"z,optional,split"`
	Intensity float32 `parquet:"intensity,optional,split"`
	pointFields
}

type pointsRowWide struct {
	shortKeys
	PointIdx  int32   `parquet:"point_idx,delta"`
	X         float64 `parquet:"x,split"`
	Y         float64 `parquet:"y,split"`
	Z         float64 `parquet:"z,optional,split"`
	Intensity float32 `parquet:"intensity,optional,split"`
	pointFields
}

// pointFields end the rows of points: properties of a point that sensors and data sets
// give besides coordinates and intensity.
type pointFields struct {
	Ring       int32   `parquet:"ring,optional,delta"`
	Return     int32   `parquet:"return,optional,delta"`
	Laser      int32   `parquet:"laser,optional,delta"`
	Label      int32   `parquet:"label,optional,delta"`
	Elongation float32 `parquet:"elongation,optional,split"`
	TOffsetNs  int64   `parquet:"t_offset_ns,optional,delta"`
	Red        int32   `parquet:"red,optional,delta"`
	Green      int32   `parquet:"green,optional,delta"`
	Blue       int32   `parquet:"blue,optional,delta"`
}

type entropyRow struct {
	keys
	Op            string  `parquet:"op,dict"`
	NHullOrMaxima int32   `parquet:"n_hull_or_maxima,delta"`
	Lower         float64 `parquet:"lower"`
	Upper         float64 `parquet:"upper"`
	Kind          string  `parquet:"kind,dict"`
	F             float64 `parquet:"f,optional"`
	NSurvivors    int32   `parquet:"n_survivors,delta"`
	Stage         string  `parquet:"stage,optional,dict"` // before or after: side of the stage that was measured
}

type rejectsRow struct {
	Partition   int32  `parquet:"partition,delta"`
	Offset      int64  `parquet:"offset,delta"`
	Index       int32  `parquet:"index,delta"`
	TS          int64  `parquet:"ts,delta,timestamp(microsecond)"`
	TSNs        int64  `parquet:"ts_ns,delta"`
	Stage       string `parquet:"stage,dict"`
	Reason      string `parquet:"reason,dict"`
	Message     string `parquet:"message"`
	Key         []byte `parquet:"key,optional"`
	Headers     string `parquet:"headers"`
	Value       []byte `parquet:"value,optional"`
	ValueSize   int64  `parquet:"value_size,delta"`
	ValueSHA256 string `parquet:"value_sha256,optional"`
	Retriable   bool   `parquet:"retriable"`
}

type messagesRow struct {
	Partition int32       `parquet:"partition,delta"`
	Offset    int64       `parquet:"offset,delta"`
	Timestamp int64       `parquet:"timestamp,optional,delta,timestamp(microsecond)"`
	Key       []byte      `parquet:"key,optional"`
	Headers   []headerRow `parquet:"headers,list"`
	ValueSize int64       `parquet:"value_size,optional,delta"`
	Value     []byte      `parquet:"value,optional,plain"`
}

type headerRow struct {
	Key   string `parquet:"key"`
	Value []byte `parquet:"value,optional"`
}
