package ratelimit_test

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed4f92381c/ratelimit"
)

// TestReadmeSnippets compiles and vets every block of README.md that is marked
// as Go, and runs the tests among them. A block with a package clause is taken
// as it is. Any other is a fragment, and gets
//
//   - the imports of readmeImports that it mentions,
//   - if its first line does not start with func, type or var, a function
//     around it that has a ctx and returns an error.
//
// Each block is a package of its own, in a temporary module that requires what
// this one does.
func TestReadmeSnippets(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := readmeSnippets(string(readme))
	if len(snippets) < 5 {
		t.Fatalf("found %d snippets, want more: has the marking of blocks changed?", len(snippets))
	}
	for _, s := range snippets {
		if formatted, err := format.Source([]byte(s.code)); err == nil && string(formatted) != s.code {
			t.Errorf("README.md:%d: the snippet is not gofmt'ed", s.line)
		}
	}
	if out, err := compileSnippets(t, snippets); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestReadmeSnippetsCanFail proves the test above by snippets that must not
// compile.
func TestReadmeSnippetsCanFail(t *testing.T) {
	broken := readmeSnippets("One\n\n```go\nlimiter := ratelimit.NoSuchLimiter()\nlimiter.Allow()\n```\n\n" +
		"```go\npackage main\n\nfunc main() { unused := 1 }\n```\n")
	out, err := compileSnippets(t, broken)
	if err == nil {
		t.Fatal("broken snippets compile")
	}
	for _, want := range []string{"README.md:4:", "NoSuchLimiter", "README.md:11:", "unused"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not have %q:\n%s", want, out)
		}
	}
}

// TestReadmePolicies parses the texts of the table under "Policies are data".
func TestReadmePolicies(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "| text | policy |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	texts := 0
	for row := range strings.Lines(table) {
		for _, text := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			texts++
			p, err := ratelimit.ParsePolicy(text[1])
			if err != nil {
				t.Error(err)
			} else if p.String() != text[1] && strings.Contains(text[1], "=") {
				t.Errorf("%q prints as %q", text[1], p)
			}
		}
	}
	if texts < 10 {
		t.Errorf("found %d texts, want more: has the table changed?", texts)
	}
}

type readmeSnippet struct {
	line int // of its first line of code
	code string
}

var readmeBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

func readmeSnippets(readme string) (snippets []readmeSnippet) {
	for _, at := range readmeBlock.FindAllStringSubmatchIndex(readme, -1) {
		start, end := at[2], at[3]
		snippets = append(snippets, readmeSnippet{1 + strings.Count(readme[:start], "\n"), readme[start:end]})
	}
	return snippets
}

const readmeModule = "github.com/seed4f92381c/ratelimit"

// readmeImports are the packages that fragments may mention.
var readmeImports = []string{
	"context", "errors", "fmt", "math", "net/http", "strconv", "strings", "testing", "testing/synctest", "time",
	"github.com/benbjohnson/clock", readmeModule,
}

// source is the snippet as a file, whose errors have the lines of README.md.
func (s readmeSnippet) source() string {
	line := fmt.Sprintf("//line README.md:%d\n", s.line)
	if strings.HasPrefix(s.code, "package ") {
		return line + s.code
	}
	top := regexp.MustCompile(`^(func|type|var) `).MatchString(s.code)
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, path := range readmeImports {
		name := path[strings.LastIndex(path, "/")+1:]
		if regexp.MustCompile(`\b`+name+`\.[A-Z]`).MatchString(s.code) || name == "context" && !top {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	if top {
		return b.String() + line + s.code
	}
	return b.String() + "\nfunc _(ctx context.Context) error {\n_ = ctx\n{\n" + line + s.code + "}\nreturn nil\n}\n"
}

func compileSnippets(t *testing.T, snippets []readmeSnippet) (output string, err error) {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	write := func(text string, path ...string) {
		file := filepath.Join(append([]string{temp}, path...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(string(text), name)
	}
	edit := exec.Command("go", "mod", "edit", "-module=readme", "-require="+readmeModule+"@v0.0.0",
		"-replace="+readmeModule+"="+root)
	test := exec.Command("go", "test", "./...")
	for _, s := range snippets {
		file := "snippet.go"
		if strings.Contains(s.code, "*testing.T") {
			file = "snippet_test.go"
		}
		write(s.source(), fmt.Sprintf("line%d", s.line), file)
	}
	for _, cmd := range []*exec.Cmd{edit, test} {
		cmd.Dir = temp
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), fmt.Errorf("%v: %w", cmd.Args, err)
		}
	}
	return "", nil
}
