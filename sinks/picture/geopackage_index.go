package picture

import (
	"cmp"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// spatialIndex is the R-tree of a table of features, which the GeoPackage extension
// gpkg_rtree_index defines: a virtual table rtree_<table>_geom of SQLite, and triggers that
// keep it current when a GIS program changes features.
//
// Insertion into the virtual table takes ten times as long as insertion of the feature. So
// the index is packed: its three shadow tables are written directly, as GDAL does.
//
//	rtree_<table>_geom_rowid   (rowid, nodeno)       leaf of each feature
//	rtree_<table>_geom_parent  (nodeno, parentnode)  parent of each node but the root
//	rtree_<table>_geom_node    (nodeno, data)        nodes; the root is 1
//
//	data of a node, big-endian, padded to nodeBytes:
//	  0  uint16  height of the tree above its leaves; 0 in nodes other than the root
//	  2  uint16  number of cells
//	  4  cells   int64 fid, or number of the node below; float32 min x, max x, min y, max y
//
// Features that come one after the other are packed together (STR: by x into strips, then
// by y into nodes), in parts of partOfIndex. Memory holds a part, and an entry for each node.
type spatialIndex struct {
	conn                   *sql.Conn
	table                  string
	rowids, parents, nodes *rowWriter
	part                   []indexEntry // features that are in no leaf, by ascending fid
	level                  []indexEntry // nodes that have no parent
	newest                 int64        // number of the newest node
}

// indexEntry is a feature or node with its bounds, which contain those of the table.
type indexEntry struct {
	id                     int64
	minX, maxX, minY, maxY float32
}

const (
	nodeCells   = 51 // what SQLite takes for pages of 1264 bytes and more
	cellBytes   = 8 + 4*4
	nodeBytes   = 4 + nodeCells*cellBytes
	rootNode    = 1
	partOfIndex = 1 << 16
)

// rtreeName is the name of the index of a table.
func rtreeName(table string) string { return "rtree_" + table + "_geom" }

func newSpatialIndex(conn *sql.Conn, table string) (*spatialIndex, error) {
	x := &spatialIndex{conn: conn, table: table, newest: rootNode}
	name := rtreeName(table)
	_, err := conn.ExecContext(background, "CREATE VIRTUAL TABLE "+name+" USING rtree(id, minx, maxx, miny, maxy)")
	if err != nil {
		return nil, err
	}
	if x.rowids, err = newRowWriter(conn, name+"_rowid", []string{"rowid", "nodeno"}); err == nil {
		if x.parents, err = newRowWriter(conn, name+"_parent", []string{"nodeno", "parentnode"}); err == nil {
			x.nodes, err = newRowWriter(conn, name+"_node", []string{"nodeno", "data"})
		}
	}
	return x, err
}

func (x *spatialIndex) close() error {
	if x == nil {
		return nil
	}
	return errors.Join(x.rowids.close(), x.parents.close(), x.nodes.close())
}

// add indexes a feature. Its number is greater than all before.
func (x *spatialIndex) add(fid int64, e envelope) error {
	x.part = append(x.part, indexEntry{fid, below(e.minX), above(e.maxX), below(e.minY), above(e.maxY)})
	if len(x.part) < partOfIndex {
		return nil
	}
	return x.packLeaves()
}

// below returns the greatest float32 that is not above v; above the least that is not below.
func below(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		f = math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return f
}

func above(v float64) float32 { return -below(-v) }

// packLeaves makes leaves of the part.
func (x *spatialIndex) packLeaves() error {
	if len(x.part) == 0 {
		return nil
	}
	first, last := x.part[0].id, x.part[len(x.part)-1].id
	leaves := make([]int64, last-first+1) // leaf of each feature; 0 without geometry
	err := pack(x.part, func(cells []indexEntry) error {
		leaf, err := x.addNode(cells)
		for _, c := range cells {
			leaves[c.id-first] = leaf
		}
		return err
	})
	for k, leaf := range leaves {
		if leaf != 0 && err == nil {
			err = x.rowids.add(first+int64(k), leaf)
		}
	}
	x.part = x.part[:0]
	return err
}

// pack calls use with groups of at most nodeCells entries that are near each other. It
// sorts entries.
func pack(entries []indexEntry, use func(cells []indexEntry) error) error {
	byX := func(a, b indexEntry) int {
		return cmp.Or(cmp.Compare(a.minX/2+a.maxX/2, b.minX/2+b.maxX/2), cmp.Compare(a.id, b.id))
	}
	byY := func(a, b indexEntry) int {
		return cmp.Or(cmp.Compare(a.minY/2+a.maxY/2, b.minY/2+b.maxY/2), cmp.Compare(a.id, b.id))
	}
	nodes := (len(entries) + nodeCells - 1) / nodeCells
	strip := int(math.Ceil(math.Sqrt(float64(nodes)))) * nodeCells
	slices.SortFunc(entries, byX)
	for inStrip := range slices.Chunk(entries, strip) {
		slices.SortFunc(inStrip, byY)
		for cells := range slices.Chunk(inStrip, nodeCells) {
			if err := use(cells); err != nil {
				return err
			}
		}
	}
	return nil
}

// addNode writes a node other than the root, and returns its number.
func (x *spatialIndex) addNode(cells []indexEntry) (int64, error) {
	x.newest++
	bounds := indexEntry{x.newest, cells[0].minX, cells[0].maxX, cells[0].minY, cells[0].maxY}
	for _, c := range cells[1:] {
		bounds.minX, bounds.maxX = min(bounds.minX, c.minX), max(bounds.maxX, c.maxX)
		bounds.minY, bounds.maxY = min(bounds.minY, c.minY), max(bounds.maxY, c.maxY)
	}
	x.level = append(x.level, bounds)
	return x.newest, x.nodes.add(x.newest, nodeOf(cells, 0))
}

func nodeOf(cells []indexEntry, height int) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, nodeBytes), uint16(height))
	b = binary.BigEndian.AppendUint16(b, uint16(len(cells)))
	for _, c := range cells {
		b = binary.BigEndian.AppendUint64(b, uint64(c.id))
		for _, v := range [...]float32{c.minX, c.maxX, c.minY, c.maxY} {
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b[:nodeBytes]
}

// finish writes the levels above the leaves and the root, adds the triggers and tells the
// format's list of extensions. No feature may be added after it: the triggers call
// functions that GIS programs have.
func (x *spatialIndex) finish() error {
	if err := x.finishTree(); err != nil {
		return err
	}
	for _, w := range []*rowWriter{x.rowids, x.parents, x.nodes} {
		if err := w.flush(); err != nil {
			return err
		}
	}
	for _, trigger := range rtreeTriggers(x.table) {
		if _, err := x.conn.ExecContext(background, trigger); err != nil {
			return err
		}
	}
	_, err := x.conn.ExecContext(background, "INSERT INTO gpkg_extensions VALUES (?, 'geom', 'gpkg_rtree_index', "+
		"'http://www.geopackage.org/spec120/#extension_rtree', 'write-only')", x.table)
	return err
}

func (x *spatialIndex) finishTree() error {
	root, height := x.part, 0
	if len(x.level) == 0 && len(x.part) <= nodeCells { // the root is the only leaf
		for _, c := range x.part {
			if err := x.rowids.add(c.id, int64(rootNode)); err != nil {
				return err
			}
		}
	} else {
		if err := x.packLeaves(); err != nil {
			return err
		}
		for height = 1; len(x.level) > nodeCells; height++ {
			under := x.level
			x.level = nil
			if err := pack(under, func(cells []indexEntry) error {
				parent, err := x.addNode(cells)
				return errors.Join(err, x.addParents(cells, parent))
			}); err != nil {
				return err
			}
		}
		root = x.level
		if err := x.addParents(root, rootNode); err != nil {
			return err
		}
	}
	_, err := x.conn.ExecContext(background, "UPDATE "+rtreeName(x.table)+"_node SET data = ? WHERE nodeno = ?",
		nodeOf(root, height), rootNode)
	return err
}

// addParents says which node is above others.
func (x *spatialIndex) addParents(nodes []indexEntry, parent int64) error {
	for _, n := range nodes {
		if err := x.parents.add(n.id, parent); err != nil {
			return err
		}
	}
	return nil
}

// rtreeTriggers are the triggers of the extension, as version 1.3 of the format has them.
func rtreeTriggers(table string) []string {
	name := rtreeName(table)
	const (
		filled = `(NEW."geom" NOTNULL AND NOT ST_IsEmpty(NEW."geom"))`
		none   = `(NEW."geom" ISNULL OR ST_IsEmpty(NEW."geom"))`
	)
	enter := `INSERT OR REPLACE INTO "` + name + `" VALUES (NEW."fid", ST_MinX(NEW."geom"), ST_MaxX(NEW."geom"), ` +
		`ST_MinY(NEW."geom"), ST_MaxY(NEW."geom")); `
	leave := `DELETE FROM "` + name + `" WHERE id = OLD."fid"; `
	leaveBoth := `DELETE FROM "` + name + `" WHERE id IN (OLD."fid", NEW."fid"); `
	var all []string
	for _, t := range []struct{ suffix, event, when, do string }{
		{"insert", "INSERT", filled, enter},
		{"update1", `UPDATE OF "geom"`, `OLD."fid" = NEW."fid" AND ` + filled, enter},
		{"update2", `UPDATE OF "geom"`, `OLD."fid" = NEW."fid" AND ` + none, leave},
		{"update3", "UPDATE", `OLD."fid" != NEW."fid" AND ` + filled, leave + enter},
		{"update4", "UPDATE", `OLD."fid" != NEW."fid" AND ` + none, leaveBoth},
		{"delete", "DELETE", `OLD."geom" NOTNULL`, leave},
	} {
		all = append(all, `CREATE TRIGGER "`+name+"_"+t.suffix+`" AFTER `+t.event+` ON "`+table+`" WHEN `+t.when+
			" BEGIN "+t.do+"END")
	}
	return all
}
