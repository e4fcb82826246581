package action_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/action"
)

// FuzzScript checks that any script is parsed within the limits, and always the same way.
func FuzzScript(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s)
	}
	for _, s := range []string{`sudo rm -rf "$HOME/x" | tee y`, "bash <<'EOF'\nrm f\nEOF\n", `for x in {a,b}; do eval "$x"; done`, `f() { "$@"; }; f a`, `x=(a b); ${x[@]:1} ${x/a/b}`, `find . -exec sh -c 'rm {}' \;`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		a, b := action.Script(script, "/work"), action.Script(script, "/work")
		if strings.Join(lines(a), "\n") != strings.Join(lines(b), "\n") || strings.Join(pathsOf(a), "\n") != strings.Join(pathsOf(b), "\n") {
			t.Errorf("%q has two meanings", script)
		}
		if len(a.Commands) > 1000 || len(a.Paths) > 1000 {
			t.Errorf("%q has %d commands and %d paths", script, len(a.Commands), len(a.Paths))
		}
	})
}

// hostile returns scripts that take much work if nothing bounds it.
func hostile() map[string]string {
	repeated := func(s string) string { return strings.Repeat(s, 60<<10/len(s)) }
	double := strings.Builder{}
	double.WriteString("x=aaaaaaaaaaaaaaaa;")
	for range 60 {
		double.WriteString("x=$x$x;")
	}
	nested := "rm f"
	for len(nested) < 20<<10 {
		nested = "bash -c '" + strings.ReplaceAll(nested, "'", `'\''`) + "' | cat"
	}
	return map[string]string{
		"open brackets":          repeated("("),
		"open substitutions":     repeated("$("),
		"open braces":            repeated("{ "),
		"open ifs":               repeated("if "),
		"open quotes":            repeated(`"$(`),
		"backquotes":             repeated("`"),
		"negations":              repeated("! "),
		"arithmetic":             "$((" + repeated("(1+"),
		"tests":                  "[[ " + repeated("! ("),
		"words":                  repeated("a "),
		"statements":             repeated("a;"),
		"pipes":                  repeated("a|"),
		"lists":                  repeated("a&&"),
		"redirects":              "a " + repeated(">a "),
		"assignments":            repeated("x=$x$x;"),
		"a doubled variable":     double.String() + "$x",
		"a replaced variable":    "x=" + strings.Repeat("a", 30<<10) + ";y=${x//a/$x};$y",
		"a long expansion":       "x=" + strings.Repeat("a", 1<<10) + ";a " + strings.Repeat("$x", 10<<10),
		"braces":                 "a " + strings.Repeat("{1,2}", 1000),
		"a sequence":             "a {1..1000000000}",
		"alternatives":           strings.Repeat("if a; then x=1; else x=2; fi;", 500) + "$x",
		"many variables":         repeated("if a;then b$RANDOM=1;fi;"),
		"nested loops":           strings.Repeat("while a; do ", 40) + strings.Repeat("done;", 40),
		"nested shells":          nested,
		"recursive functions":    "a() { b; b; }; b() { a; a; }; a",
		"functions in functions": strings.Repeat("f() { ", 40) + "a;" + strings.Repeat("};f;", 40),
		"doubling functions":     doubling(),
		"a wide format":          `$(printf '%1000000000d' 1)`,
		"xargs":                  "echo " + strings.Repeat("a ", 20<<10) + "| xargs -n1 rm",
		"parallel":               "parallel rm ::: " + strings.Repeat("a ", 20<<10),
		"patterns":               `x=` + strings.Repeat("a", 10<<10) + `; ${x%%*a*a*a*a*a*a*b}`,
		"here-documents":         strings.Repeat("a <<E\n$(b)\nE\n", 4000),
	}
}

// doubling returns functions of which each calls the next one twice.
func doubling() string {
	var b strings.Builder
	for i := range 40 {
		n := string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		next := string(rune('a'+(i+1)%26)) + strings.Repeat("x", (i+1)/26)
		b.WriteString(n + "f() { " + next + "f; " + next + "f; };")
	}
	return b.String() + "af"
}

func BenchmarkHostile(b *testing.B) {
	for name, script := range hostile() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				action.Script(script, "/work")
			}
		})
	}
}

func BenchmarkScript(b *testing.B) {
	for name, script := range map[string]string{
		"short":    `git status --short`,
		"usual":    `cd /work/app && go test ./... 2>&1 | tail -20`,
		"wrapped":  `sudo -u root env A=1 bash -c 'rm -rf "$HOME/build"'`,
		"document": "cat > main.go <<'EOF'\n" + strings.Repeat("\tfmt.Println(\"hello\")\n", 100) + "EOF\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				action.Script(script, "/work")
			}
		})
	}
}
