package codec

import "strings"

// AssignRoles sets the roles of fields by their names, as RoleOf knows them. Drivers write
// fields whose names mean the same column, such as intensity and reflectivity: the field
// with the column's own name gets the role, else the first one, and the others have none.
// The same name twice is an error if it has a role: nobody can tell which field is meant.
//
// named reports which name of a field counts; nil: the field's own name.
func AssignRoles(fields []Field, named func(name string) string) *Error {
	var held [numRoles]int // 1 + index of the field that holds the role
	for i := range fields {
		f := &fields[i]
		name := f.Name
		if named != nil {
			name = named(name)
		}
		f.Role = RoleOf(name)
		if f.Role == NoRole {
			continue
		}
		if held[f.Role] == 0 {
			held[f.Role] = i + 1
			continue
		}
		old := &fields[held[f.Role]-1]
		if strings.EqualFold(old.Name, f.Name) {
			return Errorf(Duplicate, -1, "there are two fields %s", f.Name)
		}
		if strings.EqualFold(name, RoleNames[f.Role]) {
			old.Role, held[f.Role] = NoRole, i+1
		} else {
			f.Role = NoRole
		}
	}
	return nil
}
