package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"entropipe/ops/web"
)

// page returns the files of the page by their names.
func page(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(web.Assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := web.Assets.ReadFile(name)
		files[path.Base(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// All files of the page together, gzipped, take less than 150 kB.
func TestPageIsSmall(t *testing.T) {
	const limit = 150_000
	total := 0
	for name, content := range page(t) {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		w.Write([]byte(content))
		w.Close()
		t.Logf("%7d %s", b.Len(), name)
		total += b.Len()
	}
	if total >= limit {
		t.Errorf("the page takes %d bytes gzipped, want less than %d", total, limit)
	}
}

// The page loads its own files alone, all of them are there, and none is loaded late: a view
// that is opened first when the connection is lost must be there.
func TestPageNamesItsFiles(t *testing.T) {
	files := page(t)
	index := files["index.html"]
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(index, -1) {
		name, own := strings.CutPrefix(m[1], "assets/")
		switch {
		case m[1] == "api/state" || m[1] == "metrics": // for those without scripts
		case !own || files[name] == "":
			t.Errorf("index.html names %s, which is no file of the page", m[1])
		}
	}
	imports := regexp.MustCompile(`(?m)^(?:import|export) .*from "\./([^"]+)";$|^\} from "\./([^"]+)";$`)
	for name, content := range files {
		if path.Ext(name) != ".js" || name == "uPlot.js" {
			continue
		}
		if name != "main.js" && name != "boot.js" &&
			!strings.Contains(index, `<link class="module" href="assets/`+name+`">`) {
			t.Errorf("index.html does not name %s, which boot.js loads", name)
		}
		for _, m := range imports.FindAllStringSubmatch(content, -1) {
			if files[m[1]+m[2]] == "" {
				t.Errorf("%s imports %s, which is no file of the page", name, m[1]+m[2])
			}
		}
	}
}

// The policy of the server forbids inline scripts and styles, and code from texts.
func TestPageHasNothingInline(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"an inline style":   regexp.MustCompile(`(?i)<style|\sstyle=|"style"\s*:|setAttribute\("style"`),
		"an inline script":  regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son[a-z]+="`),
		"code from text":    regexp.MustCompile(`\beval\(|new Function\(|innerHTML|insertAdjacentHTML|document\.write`),
		"a foreign address": regexp.MustCompile(`(?:src|href)\s*[=:]\s*"(?:https?:)?//|url\(\s*["']?(?:https?:)?//`),
	}
	for name, content := range page(t) {
		if name == "uPlot.js" || name == "uPlot.LICENSE" {
			continue
		}
		for what, pattern := range forbidden {
			if found := pattern.FindString(content); found != "" {
				t.Errorf("%s has %s: %s", name, what, found)
			}
		}
	}
}
