package codec

import "strings"

// AssignRoles sets the roles of fields by their names, as RoleOf knows them, and leaves each
// role to one field, as oneEach does.
//
// named reports which name of a field counts; nil: the field's own name.
func AssignRoles(fields []Field, named func(name string) string) *Error {
	if named == nil {
		named = func(name string) string { return name }
	}
	for i := range fields {
		fields[i].Role = RoleOf(named(fields[i].Name))
	}
	return oneEach(fields, named)
}

// oneEach leaves each role to one field. Drivers write fields whose names mean the same
// column, such as intensity and reflectivity: the field with the column's own name keeps the
// role, else the first one, and the others have none. The same name twice, in any letters, is
// an error if it has a role: nobody can tell which field is meant.
func oneEach(fields []Field, named func(name string) string) *Error {
	var held [numRoles]*Field
	for i := range fields {
		f := &fields[i]
		old := held[f.Role]
		switch {
		case f.Role == NoRole:
		case old == nil:
			held[f.Role] = f
		case strings.EqualFold(old.Name, f.Name):
			return Errorf(Duplicate, -1, "there are two fields %s", f.Name)
		case strings.EqualFold(named(f.Name), RoleNames[f.Role]):
			old.Role, held[f.Role] = NoRole, f
		default:
			f.Role = NoRole
		}
	}
	return nil
}
