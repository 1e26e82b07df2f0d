package foxglove

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// definition describes a message. The number of a field is its place in fields, from 1. A
// star marks a repeated field; a type with a small letter is one of Protobuf's own.
type definition struct {
	fields string // name:type …
	enum   string // name of the enumeration within the message
	values string // its values, from 0
}

const colored = " color:Color"

// definitions are the messages that those of this package are made of, one a file.
var definitions = map[string]definition{
	"PointCloud": {fields: "timestamp:Timestamp frame_id:string pose:Pose point_stride:fixed32 " +
		"fields:PackedElementField* data:bytes"},
	"PackedElementField": {fields: "name:string offset:fixed32 type:NumericType", enum: "NumericType",
		values: strings.Join(typeNames, " ")},
	"Pose":       {fields: "position:Vector3 orientation:Quaternion"},
	"Vector3":    {fields: "x:double y:double z:double"},
	"Point3":     {fields: "x:double y:double z:double"},
	"Quaternion": {fields: "x:double y:double z:double w:double"},
	"Color":      {fields: "r:double g:double b:double a:double"},
	"FrameTransform": {fields: "timestamp:Timestamp parent_frame_id:string child_frame_id:string translation:Vector3 " +
		"rotation:Quaternion"},
	"SceneUpdate": {fields: "deletions:SceneEntityDeletion* entities:SceneEntity*"},
	"SceneEntityDeletion": {fields: "timestamp:Timestamp type:Type id:string", enum: "Type",
		values: "MATCHING_ID ALL"},
	"SceneEntity": {fields: "timestamp:Timestamp frame_id:string id:string lifetime:Duration frame_locked:bool " +
		"metadata:KeyValuePair* arrows:ArrowPrimitive* cubes:CubePrimitive* spheres:SpherePrimitive* " +
		"cylinders:CylinderPrimitive* lines:LinePrimitive* triangles:TriangleListPrimitive* texts:TextPrimitive* " +
		"models:ModelPrimitive*"},
	"KeyValuePair": {fields: "key:string value:string"},
	"ArrowPrimitive": {fields: "pose:Pose shaft_length:double shaft_diameter:double head_length:double " +
		"head_diameter:double" + colored},
	"CubePrimitive":   {fields: "pose:Pose size:Vector3" + colored},
	"SpherePrimitive": {fields: "pose:Pose size:Vector3" + colored},
	"CylinderPrimitive": {fields: "pose:Pose size:Vector3 bottom_scale:double top_scale:double" +
		colored},
	"LinePrimitive": {fields: "type:Type pose:Pose thickness:double scale_invariant:bool points:Point3*" + colored +
		" colors:Color* indices:fixed32*", enum: "Type", values: "LINE_STRIP LINE_LOOP LINE_LIST"},
	"TriangleListPrimitive": {fields: "pose:Pose points:Point3*" + colored + " colors:Color* indices:fixed32*"},
	"TextPrimitive": {fields: "pose:Pose billboard:bool font_size:double scale_invariant:bool" + colored +
		" text:string"},
	"ModelPrimitive": {fields: "pose:Pose scale:Vector3" + colored + " override_color:bool url:string " +
		"media_type:string data:bytes"},
}

// scalars are the types of Protobuf that the messages use.
var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"fixed32": descriptorpb.FieldDescriptorProto_TYPE_FIXED32, "double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
}

// wellKnown are the messages that come with Protobuf.
var wellKnown = map[string]protoreflect.FileDescriptor{
	"Timestamp": timestamppb.File_google_protobuf_timestamp_proto,
	"Duration":  durationpb.File_google_protobuf_duration_proto,
}

// Schema returns the FileDescriptorSet of a message of the Foxglove schemas with all that it
// refers to, as the schema records of MCAP hold it; nil for a name that is not among those
// that this package encodes. A file stands behind the files that it imports.
func Schema(name string) []byte {
	message, ok := strings.CutPrefix(name, "foxglove.")
	if _, known := definitions[message]; !ok || !known {
		return nil
	}
	set := &descriptorpb.FileDescriptorSet{}
	addFile(set, map[string]bool{}, message)
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		panic("foxglove: " + err.Error()) // the definitions above are valid
	}
	return b
}

// addFile adds the file of a message behind the files that it imports, and returns its path.
func addFile(set *descriptorpb.FileDescriptorSet, added map[string]bool, message string) string {
	if file, ok := wellKnown[message]; ok {
		if !added[message] {
			added[message] = true
			set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
		}
		return file.Path()
	}
	path := "foxglove/" + message + ".proto"
	if added[message] {
		return path
	}
	added[message] = true
	d := definitions[message]
	out := &descriptorpb.DescriptorProto{Name: proto.String(message)}
	imports := map[string]bool{}
	for i, text := range strings.Fields(d.fields) {
		name, kind, _ := strings.Cut(text, ":")
		field, refers := fieldOf(message, d.enum, name, kind)
		field.Number = proto.Int32(int32(i + 1))
		out.Field = append(out.Field, field)
		if refers != "" {
			imports[addFile(set, added, refers)] = true
		}
	}
	if d.enum != "" {
		enum := &descriptorpb.EnumDescriptorProto{Name: proto.String(d.enum)}
		for i, value := range strings.Fields(d.values) {
			enum.Value = append(enum.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(value),
				Number: proto.Int32(int32(i))})
		}
		out.EnumType = append(out.EnumType, enum)
	}
	set.File = append(set.File, &descriptorpb.FileDescriptorProto{Name: proto.String(path),
		Package: proto.String("foxglove"), Syntax: proto.String("proto3"),
		Dependency: slices.Sorted(maps.Keys(imports)), MessageType: []*descriptorpb.DescriptorProto{out}})
	return path
}

// fieldOf returns a field without its number, and the message that it refers to.
func fieldOf(message, enum, name, kind string) (f *descriptorpb.FieldDescriptorProto, refers string) {
	kind, repeated := strings.CutSuffix(kind, "*")
	f = &descriptorpb.FieldDescriptorProto{Name: proto.String(name),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if repeated {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	switch scalar, ok := scalars[kind]; {
	case ok:
		f.Type = scalar.Enum()
	case kind == enum:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
		f.TypeName = proto.String(".foxglove." + message + "." + enum)
	case wellKnown[kind] != nil:
		f.Type, refers = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), kind
		f.TypeName = proto.String(".google.protobuf." + kind)
	default:
		f.Type, refers = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), kind
		f.TypeName = proto.String(".foxglove." + kind)
	}
	return f, refers
}
