package hooksyaml

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// referenceSection returns the text of HOOKS.md below a heading, up to the next heading.
func referenceSection(t *testing.T, heading string) string {
	t.Helper()
	doc, err := os.ReadFile("../HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(doc), "\n"+heading+"\n")
	if !found {
		t.Fatalf("schema/HOOKS.md has no section %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// referenceRows returns the rows of the tables in a section of HOOKS.md, without their headers.
func referenceRows(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	bar := regexp.MustCompile(`(^|[^\\])\|`)
	for line := range strings.Lines(referenceSection(t, heading)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| `") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(bar.ReplaceAllString(strings.Trim(line, "|"), "$1\x00"), "\x00") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, `\|`, "|")))
		}
		rows = append(rows, cells)
	}
	return rows
}

var referenceCode = regexp.MustCompile("`([^`]+)`")

// referenceWords returns the texts between backquotes in a cell.
func referenceWords(cell string) (all []string) {
	for _, m := range referenceCode.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func referenceKeys(t *testing.T, heading string) (keys []string) {
	t.Helper()
	for _, row := range referenceRows(t, heading) {
		keys = append(keys, referenceWords(row[0])[0])
	}
	return keys
}

func TestTheReferenceNamesEveryKey(t *testing.T) {
	for heading, want := range map[string][]string{
		"## Top level":      append(slices.Clone(documentKeys), "$schema"),
		"### agents":        append(slices.Clone(agentKeys), "override", "hooks"),
		"### python":        pythonKeys,
		"### tls":           tlsKeys,
		"### packs":         slices.Concat(packKeys, exceptionKeys),
		"## Rules":          ruleKeys,
		"## Keys of a hook": hookKeys,
	} {
		got := referenceKeys(t, heading)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
			t.Errorf("the keys in %q of schema/HOOKS.md differ (-code +document):\n%s", heading, diff)
		}
	}
	for _, preset := range presetNames {
		if !strings.Contains(referenceSection(t, "### presets"), "`"+preset+"`") {
			t.Errorf("schema/HOOKS.md does not name the preset %s", preset)
		}
	}
}

func TestTheReferenceNamesEveryEvent(t *testing.T) {
	var moments, rules [][]string
	for _, row := range referenceRows(t, "## Events") {
		if len(row) == 3 {
			moments = append(moments, []string{referenceWords(row[0])[0], strings.Join(referenceWords(row[1]), " ")})
		} else {
			rules = append(rules, append([]string{referenceWords(row[0])[0]}, row[1:]...))
		}
	}
	values := map[schema.ValueKind]string{schema.NoValue: "–", schema.MessageValue: "message", schema.ToolResultValue: "tool result", schema.ResponseValue: "response"}
	rewrites := map[schema.Rewrite]string{schema.NoRewrite: "–", schema.RewriteInput: "tool input", schema.RewriteOutput: "tool output",
		schema.RewriteMessage: "message", schema.RewriteResponse: "response"}
	var wantMoments, wantRules [][]string
	for _, e := range schema.EventTypes() {
		var names, decisions []string
		for _, seed := range schema.SeedNames() {
			if schema.EventType(seed).Canonical() == e {
				names = append(names, seed)
			}
		}
		for _, d := range e.Decisions() {
			decisions = append(decisions, string(d))
		}
		failed := string(e.Blocking())
		if failed == "" {
			failed = "only an entry in `hook_errors`"
		}
		wantMoments = append(wantMoments, []string{string(e), strings.Join(names, " ")})
		wantRules = append(wantRules, []string{string(e), strings.Join(decisions, ", "), values[e.StopValue()], rewrites[e.Rewrites()],
			fmt.Sprint(e.ReadonlyByDefault()), failed})
	}
	if diff := cmp.Diff(wantMoments, moments); diff != "" {
		t.Errorf("the events in schema/HOOKS.md differ (-code +document):\n%s", diff)
	}
	if diff := cmp.Diff(wantRules, rules); diff != "" {
		t.Errorf("the decisions in schema/HOOKS.md differ (-code +document):\n%s", diff)
	}
}

// referenceHooks are hooks of each kind, to which the example of a key is added.
var referenceHooks = []string{"type: command\nhandler: ./a.sh", "type: python\nhandler: a.b", "type: builtin\nhandler: log", "type: http\nhandler: https://policy.example/hook"}

// referenceHook reads one hook at PreToolUse.
func referenceHook(lines ...string) (*schema.Hook, error) {
	text := "presets: []\nhooks:\n  PreToolUse:\n    - \n      " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n      ")
	doc, err := Read("HOOKS.md", []byte(text), Options{})
	if err != nil {
		return nil, err
	}
	return &doc.Config.Hooks[0], nil
}

// referenceBase returns a hook without the keys that the example has.
func referenceBase(base, key string) string {
	lines := slices.DeleteFunc(strings.Split(base, "\n"), func(line string) bool { return strings.HasPrefix(line, key+":") })
	return strings.Join(lines, "\n")
}

func TestTheExamplesOfTheReferenceAreRead(t *testing.T) {
	for heading, around := range map[string]string{
		"## Top level": "%s",
		"### agents":   "agents:\n  - {id: writer, %s}",
		"### python":   "python: {%s}",
		"### tls":      "hooks: {PreToolUse: [{type: http, handler: \"https://policy.example/hook\", tls: {cert: a, key: b, %s}}]}",
	} {
		for _, row := range referenceRows(t, heading) {
			key, example := referenceWords(row[0])[0], referenceWords(row[4])[0]
			text := fmt.Sprintf(around, example)
			switch {
			case !strings.HasPrefix(example, key+":"):
				t.Errorf("%s: the example of %s is %s", heading, key, example)
			case heading == "### agents" && key == "id":
				text = "agents: [{" + example + "}]"
			case heading == "### agents" && (key == "override" || strings.Contains(example, "hooks: [")):
				text = "agents: [{id: writer, hooks: {PreToolUse: {" + example + "}}}]"
			case heading == "### tls":
				text = regexp.MustCompile(key+`: [ab], `).ReplaceAllString(text, "")
			}
			if key == "pack_exceptions" {
				text = "packs: [destructive]\n" + text
			}
			pack := `rules: [{id: force-push, title: t, when: "true", action: deny, message: m}]`
			if _, err := Read("HOOKS.md", []byte(text), Options{Packs: map[string]string{"destructive": pack}}); err != nil {
				t.Errorf("the example of %s in %q: %v", key, heading, err)
			}
		}
	}
	for _, row := range referenceRows(t, "## Keys of a hook") {
		key, example := referenceWords(row[0])[0], referenceWords(row[4])[0]
		var faults []string
		for _, base := range referenceHooks {
			if _, err := referenceHook(referenceBase(base, key), example); err != nil {
				faults = append(faults, err.Error())
			}
		}
		if !strings.HasPrefix(example, key+":") || len(faults) == len(referenceHooks) {
			t.Errorf("the example of %s is read for no kind of hook:\n%s", key, strings.Join(faults, "\n"))
		}
	}
}

// Setting a key to its documented default changes nothing.
func TestTheDefaultsOfTheReferenceAreThoseOfTheReader(t *testing.T) {
	tried := 0
	for _, row := range referenceRows(t, "## Keys of a hook") {
		key, value := referenceWords(row[0])[0], strings.Trim(row[2], "`")
		if "`"+value+"`" != row[2] {
			continue
		}
		for _, base := range referenceHooks {
			before, err := referenceHook(base)
			if err != nil {
				t.Fatal(err)
			}
			after, err := referenceHook(base, key+": "+value)
			if err != nil {
				t.Errorf("the default %s of %s is a fault: %v", value, key, err)
			} else if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the default of %s is not %s (-absent +set):\n%s", key, value, diff)
			}
			tried++
		}
	}
	if tried < 40 {
		t.Errorf("only %d defaults were found", tried)
	}
}

func TestTheFilesInTheReferenceAreRead(t *testing.T) {
	doc, err := os.ReadFile("../HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(doc), -1) {
		if strings.HasPrefix(m[1], "# yaml-language-server") {
			continue
		}
		if _, err := Read("HOOKS.md", []byte(m[1]), Options{}); err != nil {
			t.Errorf("%s\n%v", m[1], err)
		}
		found++
	}
	if found == 0 {
		t.Error("no file was found")
	}
}
