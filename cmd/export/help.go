package export

// Help opens the help of export.
func (Command) Help() string {
	return `Draws one frame from the tables. svg and png show it from above, to scale; geojson has
its polygon and points; ply has the points, with flags, and a mesh for MeshLab, Blender,
CloudCompare or Open3D. For QGIS and other GIS programs gpkg is a GeoPackage of one frame,
or with --all of all frames: tables hulls, maxima, points and, where --layers names them,
triangles, in an undefined Cartesian system. mcap is for Foxglove and Rerun: points, hulls,
maxima, meshes and poses of one frame, or with --all of all frames. GIS programs take GeoJSON for longitude and
latitude: QGIS puts the metres of a scan at 0° N 0° E.

The network of a model becomes onnx, for ONNX Runtime. The mask of a transformer becomes
arrays in a .safetensors file: for ONNX Runtime's SparseAttention (ort), PyTorch's
BlockMask (flex) or FlashInfer (flashinfer).

Coordinates of points stand in table points, which run writes on request:
  entropipe run --tables hulls,maxima,triangles,points
Without table points the hull in the plane is drawn, whose corners table hulls holds.

Examples:
  entropipe export ./entropipe-out -o frame.svg
  entropipe export ./entropipe-out --as png --offset 17 > frame.png
  entropipe export ./entropipe-out --frame-id 42 --layers hull,maxima -o hull.geojson
  entropipe export ./entropipe-out --topic points --partition 0 --offset 17 -o mesh.ply
  entropipe export ./entropipe-out --sequence drive_0005 --all -o drive.gpkg
  entropipe export ./entropipe-out --sequence drive_0005 --all -o drive.mcap
  entropipe export model.safetensors -o model.onnx
  entropipe export mask/ --as flex -o blockmask.safetensors`
}

// Variables has the formats that the help of --as shows.
func (Command) Variables() map[string]string {
	return map[string]string{"export_formats": "svg|png|geojson|ply|gpkg|mcap|onnx|…"}
}

// HelpLines describes the argument and flags of export.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"out":    "Output (a folder, or s3://BUCKET/PREFIX), file of a model, or folder of a mask.",
		"as":     "Format; default: by the name of --output, else svg. ort, flex and flashinfer are for masks.",
		"output": "File to write; default, and -: stdout.",

		"topic":     "Topic of the frame.",
		"partition": "Partition of the frame's record.",
		"offset":    "Offset of the frame's record.",
		"index":     "Position of the frame within its record.",
		"dataset":   "Data set of the frame.",
		"sequence":  "Sequence of the frame.",
		"frame-id":  "Number of the frame.",
		"all":       "Write every frame that fits, in order, instead of the first; for gpkg and mcap.",

		"layers": "Layers to draw; default: those of the tables, for geojson and gpkg without triangles.",
		"width":  "Width of svg and png in pixels.",
		"ascii":  "Write ply as text instead of binary.",
	}
}
