package ratelimit_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

var updateImports = flag.Bool("update-imports", false, "write the import graph to testdata/imports.golden")

const (
	importsGolden = "testdata/imports.golden"
	modulePath    = "github.com/seed4f92381c/ratelimit"
)

// TestImports compares who imports what in the root module, tests and examples
// excluded, with the graph on file: a new dependency is a decision, so it shows
// in a diff. When it is meant, write the new graph with
//
//	go test -run TestImports -update-imports .
func TestImports(t *testing.T) {
	graph, err := importGraph(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, edge := range foreignImports(graph) {
		t.Errorf("%s: the root module may import the standard library and itself only", edge)
	}
	got := formatImports(graph)
	if *updateImports {
		if err := os.WriteFile(importsGolden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(importsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(golden); got != want {
		t.Errorf("the import graph is not the one in %s\n(if it is meant: go test -run TestImports -update-imports .)\n%s",
			importsGolden, differingLines(got, want))
	}
}

// importGraph returns the imports of each package below root, by import path,
// whatever the platform. It leaves out tests, examples, folders that the go
// command ignores, and modules inside this one.
func importGraph(root fs.FS) (map[string][]string, error) {
	graph := make(map[string][]string)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.ContainsAny(d.Name()[:1], "._") || name == "examples" || d.Name() == "testdata" || hasModule(root, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Join(modulePath, path.Dir(name))
		imports := graph[pkg]
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(imports, imported) {
				imports = append(imports, imported)
			}
		}
		slices.Sort(imports)
		graph[pkg] = imports
		return nil
	})
	return graph, err
}

func hasModule(root fs.FS, dir string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

// foreignImports returns the edges that leave the module and the standard
// library, whose paths have no dot in their first element.
func foreignImports(graph map[string][]string) (edges []string) {
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		for _, imported := range graph[pkg] {
			first, _, _ := strings.Cut(imported, "/")
			inModule := imported == modulePath || strings.HasPrefix(imported, modulePath+"/")
			if imported == "C" || strings.Contains(first, ".") && !inModule {
				edges = append(edges, fmt.Sprintf("%s imports %s", pkg, imported))
			}
		}
	}
	return edges
}

// formatImports prints a line for each package, "package: imports", sorted. What
// is in the module is named from its root.
func formatImports(graph map[string][]string) string {
	var b strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		line := pkg + ": " + strings.Join(graph[pkg], " ")
		b.WriteString(strings.TrimSpace(strings.ReplaceAll(line, path.Dir(modulePath)+"/", "")) + "\n")
	}
	return b.String()
}

func differingLines(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	var b strings.Builder
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			fmt.Fprintf(&b, "-%s\n", line)
		}
	}
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			fmt.Fprintf(&b, "+%s\n", line)
		}
	}
	return b.String()
}

// TestImportGraph gives the rule something to find.
func TestImportGraph(t *testing.T) {
	source := func(imports ...string) *fstest.MapFile {
		text := "package p\n"
		for _, name := range imports {
			text += "import " + strconv.Quote(name) + "\n"
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	graph, err := importGraph(fstest.MapFS{
		"a.go":               source("time", "golang.org/x/time/rate"),
		"a_windows.go":       source("time", "errors"),
		"a_test.go":          source("example.org/only/in/tests"),
		"internal/b/b.go":    source(modulePath, modulePath+"stress"),
		"internal/c/c.go":    source("C", "encoding/json"),
		"examples/d/main.go": source("example.org/only/in/examples"),
		"leaf/go.mod":        {Data: []byte("module leaf")},
		"leaf/leaf.go":       source("example.org/only/in/leaf"),
		"e/testdata/e.go":    source("example.org/only/in/testdata"),
		".bin/f.go":          source("example.org/only/in/hidden"),
	})
	if err != nil {
		t.Fatal(err)
	}
	wantGraph := "ratelimit: errors golang.org/x/time/rate time\n" +
		"ratelimit/internal/b: ratelimit ratelimitstress\n" +
		"ratelimit/internal/c: C encoding/json\n"
	if got := formatImports(graph); got != wantGraph {
		t.Errorf("graph:\n%swant:\n%s", got, wantGraph)
	}
	wantForeign := []string{
		modulePath + " imports golang.org/x/time/rate",
		modulePath + "/internal/b imports " + modulePath + "stress",
		modulePath + "/internal/c imports C",
	}
	if got := foreignImports(graph); !slices.Equal(got, wantForeign) {
		t.Errorf("foreign imports:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wantForeign, "\n"))
	}
}
