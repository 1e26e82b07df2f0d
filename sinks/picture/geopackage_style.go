package picture

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"
)

// layerStyles is the table from which QGIS takes the style of a layer when the layer is
// opened. Other programs ignore it.
const layerStyles = `
CREATE TABLE layer_styles (
  id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256), f_table_schema TEXT(256),
  f_table_name TEXT(256), f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT, styleSLD TEXT,
  useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30),
  update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')))`

// addStyles writes the default style of each layer that has one.
func (g *GeoPackage) addStyles() error {
	if _, err := g.conn.ExecContext(background, layerStyles); err != nil {
		return err
	}
	for _, name := range []string{"hulls", "maxima", "triangles", "points"} {
		t := g.tables[name]
		if t == nil {
			continue
		}
		if _, err := g.conn.ExecContext(background, "INSERT INTO layer_styles (f_table_catalog, f_table_schema, "+
			"f_table_name, f_geometry_column, styleName, styleQML, useAsDefault, description, owner, update_time) "+
			"VALUES ('', '', ?, 'geom', ?, ?, 1, ?, '', ?)", name, name, t.style(), contentsOf[name].says,
			isoTime(g.newest)); err != nil {
			return err
		}
	}
	return g.insertContents("layer_styles", "attributes", "styles for QGIS", 0, [4]any{})
}

// Sizes of markers and widths of lines, in millimetres of the screen or paper.
const (
	widthOfHull, widthOfMesh       = 0.5, 0.1
	sizeOfMaximum, sizeOfOnePoint  = 1.8, 0.5
	leastHeights, mostOfAllHeights = 0.02, 0.98 // parts of the points below the classes' ends
)

// style returns the layer's style in the XML of QGIS, without what QGIS has by default.
func (t *featureTable) style() string {
	switch t.name {
	case "hulls":
		return singleSymbol(fillSymbol(0, inkHullFill, inkHull, widthOfHull))
	case "triangles":
		return singleSymbol(fillSymbol(0, color.NRGBA{}, inkTriangles, widthOfMesh))
	case "maxima":
		return singleSymbol(markerSymbol(0, inkMaxima, sizeOfMaximum))
	}
	low, high := t.heights.between(leastHeights, mostOfAllHeights)
	if !(high > low) || t.inPlane {
		return singleSymbol(markerSymbol(0, inkPoints, sizeOfOnePoint))
	}
	return byHeight(low, high)
}

// inkHeights are colours from low to high: ten steps of viridis, which people see as even.
var inkHeights = [...]color.NRGBA{{0x44, 0x01, 0x54, 0xff}, {0x48, 0x28, 0x78, 0xff}, {0x3e, 0x49, 0x89, 0xff},
	{0x31, 0x68, 0x8e, 0xff}, {0x26, 0x82, 0x8e, 0xff}, {0x1f, 0x9e, 0x89, 0xff}, {0x35, 0xb7, 0x79, 0xff},
	{0x6e, 0xce, 0x58, 0xff}, {0xb5, 0xde, 0x2b, 0xff}, {0xfd, 0xe7, 0x25, 0xff}}

// byHeight colours points by z: classes of equal width from low to high. The first class
// has all points below, too, and the last one all above.
func byHeight(low, high float64) string {
	var ranges, symbols strings.Builder
	last := len(inkHeights) - 1
	end := func(k int) float64 { return low + (high-low)*float64(k)/float64(last+1) }
	for k, ink := range inkHeights {
		from, to := end(k), end(k+1)
		label := strconv.FormatFloat(from, 'g', 4, 64) + " to " + strconv.FormatFloat(to, 'g', 4, 64)
		switch k {
		case 0:
			from, label = -1e308, "below "+strconv.FormatFloat(to, 'g', 4, 64)
		case last:
			to, label = 1e308, "above "+strconv.FormatFloat(from, 'g', 4, 64)
		}
		fmt.Fprintf(&ranges, `<range render="true" symbol="%d" lower="%s" upper="%s" label="z %s"/>`, k,
			strconv.FormatFloat(from, 'g', -1, 64), strconv.FormatFloat(to, 'g', -1, 64), label)
		symbols.WriteString(markerSymbol(k, ink, sizeOfOnePoint))
	}
	return qml(`type="graduatedSymbol" graduatedMethod="GraduatedColor" attr="z($geometry)"`,
		"<ranges>"+ranges.String()+"</ranges><symbols>"+symbols.String()+"</symbols>")
}

func singleSymbol(symbol string) string {
	return qml(`type="singleSymbol"`, "<symbols>"+symbol+"</symbols>")
}

func qml(attributes, renderer string) string {
	return `<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'><qgis version="3.22.0" ` +
		`styleCategories="Symbology"><renderer-v2 ` + attributes + ">" + renderer + "</renderer-v2></qgis>"
}

func markerSymbol(number int, ink color.NRGBA, size float64) string {
	return symbolOf(number, "marker", "SimpleMarker", [][2]string{{"name", "circle"}, {"color", inkQGIS(ink)},
		{"outline_style", "no"}, {"size", fmt.Sprint(size)}, {"size_unit", "MM"}})
}

func fillSymbol(number int, fill, line color.NRGBA, width float64) string {
	style := "solid"
	if fill.A == 0 {
		style = "no"
	}
	return symbolOf(number, "fill", "SimpleFill", [][2]string{{"color", inkQGIS(fill)}, {"style", style},
		{"outline_color", inkQGIS(line)}, {"outline_style", "solid"}, {"outline_width", fmt.Sprint(width)},
		{"outline_width_unit", "MM"}})
}

func symbolOf(number int, kind, class string, options [][2]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<symbol name="%d" type="%s" alpha="1"><layer class="%s" enabled="1"><Option type="Map">`, number,
		kind, class)
	for _, o := range options {
		fmt.Fprintf(&b, `<Option name="%s" type="QString" value="%s"/>`, o[0], o[1])
	}
	b.WriteString("</Option></layer></symbol>")
	return b.String()
}

func inkQGIS(c color.NRGBA) string { return fmt.Sprintf("%d,%d,%d,%d", c.R, c.G, c.B, c.A) }
