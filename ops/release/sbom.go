package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The types are the part of CycloneDX 1.6 that a bill of ours uses.
type (
	bill struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []billed     `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp  string     `json:"timestamp"`
		Component  billed     `json:"component"`
		Properties []property `json:"properties"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	billed struct {
		Type     string          `json:"type"`
		Ref      string          `json:"bom-ref"`
		Name     string          `json:"name"`
		Version  string          `json:"version,omitempty"`
		Purl     string          `json:"purl,omitempty"`
		Scope    string          `json:"scope,omitempty"`
		Hashes   []hash          `json:"hashes,omitempty"`
		Licenses []licenseChoice `json:"licenses,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	licenseChoice struct {
		License    *licenseID `json:"license,omitempty"`
		Expression string     `json:"expression,omitempty"`
	}
	licenseID struct {
		ID string `json:"id"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

const ownRef = "entropipe"

// billOf returns the bill of materials of a program, in JSON. The error names a module of
// the program that has no component or no checksum.
func billOf(p program, sum [sha256.Size]byte, version string, all []component, linked []listed, from stamp) ([]byte,
	error) {
	b := bill{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6",
		Version: 1, Metadata: metadata{Timestamp: from.time.Format(time.RFC3339),
			Component: billed{Type: "application", Ref: ownRef, Name: "entropipe", Version: version,
				Purl: "pkg:generic/entropipe@" + version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
				Licenses: licensesOf([]string{"Apache-2.0"})},
			Properties: []property{{"entropipe:target", p.target}}}}
	for _, s := range p.info.Settings {
		b.Metadata.Properties = append(b.Metadata.Properties, property{"entropipe:build:" + s.Key, s.Value})
	}
	toolchain := strings.TrimPrefix(p.info.GoVersion, "go")
	b.Components = append(b.Components, billed{Type: "library", Ref: stdRef, Name: "std", Version: toolchain,
		Purl: "pkg:golang/std@" + url.PathEscape(toolchain), Scope: "required",
		Licenses: licensesOf([]string{"BSD-3-Clause"})})
	for _, module := range p.info.Deps {
		i := slices.IndexFunc(all, func(c component) bool { return c.Name == module.Path })
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
		if i < 0 || err != nil || len(sum) != sha256.Size || module.Version != all[i].Version {
			return nil, fmt.Errorf("%s: module %s %s has no licence or no checksum: %v", p.target, module.Path,
				module.Version, err)
		}
		// The checksum of a module is the SHA-256 of its files' names and SHA-256s.
		b.Components = append(b.Components, billed{Type: "library", Ref: refOf(module.Path), Name: module.Path,
			Version: module.Version,
			Purl:    "pkg:golang/" + module.Path + "@" + url.QueryEscape(module.Version) + "?type=module",
			Scope:   "required", Hashes: []hash{{"SHA-256", hex.EncodeToString(sum)}},
			Licenses: licensesOf(all[i].Licences)})
	}
	vendored := []string{}
	for _, c := range all {
		if !c.Module {
			b.Components = append(b.Components, billed{Type: "library", Ref: refOf(c.Name), Name: c.Name,
				Version: c.Version, Purl: "pkg:generic/" + url.PathEscape(c.Name) + "@" + url.QueryEscape(c.Version),
				Scope: "required", Licenses: licensesOf(c.Licences)})
			vendored = append(vendored, refOf(c.Name))
		}
	}
	b.Dependencies = dependenciesOf(linked, vendored)
	return b.encode()
}

const stdRef = "module:std"

func refOf(name string) string { return "module:" + name }

func licensesOf(ids []string) []licenseChoice {
	if len(ids) == 1 {
		return []licenseChoice{{License: &licenseID{ids[0]}}}
	}
	return []licenseChoice{{Expression: strings.Join(ids, " AND ")}}
}

// dependenciesOf returns which module imports packages of which others.
func dependenciesOf(linked []listed, vendored []string) []dependency {
	moduleOf := map[string]string{}
	for _, p := range linked {
		switch {
		case p.Standard || p.Module == nil:
			moduleOf[p.ImportPath] = stdRef
		case p.Module.Main:
			moduleOf[p.ImportPath] = ownRef
		default:
			moduleOf[p.ImportPath] = refOf(p.Module.Path)
		}
	}
	on := map[string][]string{ownRef: slices.Clone(vendored)}
	for _, ref := range vendored {
		on[ref] = nil
	}
	for _, p := range linked {
		from := moduleOf[p.ImportPath]
		on[from] = append(on[from], nil...) // also a module without imports has an entry
		for _, imported := range p.Imports {
			if to := moduleOf[imported]; to != "" && to != from {
				on[from] = append(on[from], to)
			}
		}
	}
	var found []dependency
	for from, to := range on {
		slices.Sort(to)
		found = append(found, dependency{from, slices.Compact(to)})
	}
	slices.SortFunc(found, func(a, b dependency) int { return strings.Compare(a.Ref, b.Ref) })
	return found
}

// encode returns the bill with a serial number that is made from its content.
func (b *bill) encode() ([]byte, error) {
	content, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(content)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // UUID of version 8
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(b)
	return out.Bytes(), err
}
