package edit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

// TestWhatIsAddedLooksLikeWhatStandsBesideIt adds an entry to texts of any style.
func TestWhatIsAddedLooksLikeWhatStandsBesideIt(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"nothing", "", "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}\n"},
		{"an empty object", "{}", "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}"},
		{"other members", "{\n    \"b\":2\n}\n", "{\n    \"b\":2,\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"a\": 1\n            }\n        ]\n    }\n}\n"},
		{"tabs", "{\n\t\"b\": [1,2]\n}\n", "{\n\t\"b\": [1,2],\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"a\": 1\n\t\t\t}\n\t\t]\n\t}\n}\n"},
		{"one line", `{"b": 2}`, `{"b": 2, "hooks": {"Stop": [{"a": 1}]}}`},
		{"a list on one line", "{\n  \"hooks\": {\"Stop\": [ {\"z\":0} ]}\n}", "{\n  \"hooks\": {\"Stop\": [ {\"z\":0}, {\"a\": 1} ]}\n}"},
		{"an empty list", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}", "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}"},
		{"Windows lines", "{\r\n  \"hooks\": {\r\n    \"Stop\": []\r\n  }\r\n}", "{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\r\n        \"a\": 1\r\n      }\r\n    ]\r\n  }\r\n}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := edit.Parse([]byte(test.before))
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Append(jsontext.Value(`{"a":1}`), "hooks", "Stop"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, string(d.Text())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	for _, text := range []string{"[]", "5", "{", "{} x", "{}{}", `{"a":1,"a":2}`, `{"a":1,}`, "{'a':1}", "\xff"} {
		if _, err := edit.Parse([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for _, text := range []string{"{\n// why\n}", "// why\n{}", `{"a": /* why */ 1}`, "{}\n// why", `{"a":1, // why` + "\n" + `"b":2}`} {
		if _, err := edit.Parse([]byte(text)); !errors.Is(err, edit.ErrComments) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := edit.ParseAs([]byte("\xef\xbb\xbf{}"), edit.Comments); !errors.Is(err, edit.ErrMark) {
		t.Errorf("a byte order mark: %v", err)
	}
	if _, err := edit.ParseAs([]byte("{} /* open"), edit.Comments); err == nil {
		t.Error("a comment without an end was taken")
	}
	if _, err := edit.Parse([]byte(strings.Repeat(" ", edit.Max+1))); err == nil {
		t.Error("a file that is too large was taken")
	}
}

// TestNothingElseChanges adds something at any place of any document, and removes it again.
func TestNothingElseChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := value(rt, 3, true)
		d, err := edit.Parse(before)
		if err != nil {
			rt.Fatalf("%s: %v", before, err)
		}
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b c", "new"}), 1, 3).Draw(rt, "path")
		had := d.Get(path...)
		count := len(d.Elements(path...))
		added := jsontext.Value(`{"added":[true]}`)
		if err := d.Append(added, path...); err != nil {
			if string(d.Text()) != string(before) {
				rt.Fatal("a refused change was made")
			}
			return
		}
		if all := d.Elements(path...); len(all) != count+1 || !edit.Equal(all[count], added) {
			rt.Fatalf("%s: it is not there in %s", path, d.Text())
		}
		if again, err := edit.Parse(d.Text()); err != nil || !edit.Equal(again.Text(), d.Text()) {
			rt.Fatalf("%s is no JSON: %v", d.Text(), err)
		}
		d.Drop(count, path...)
		for depth := len(path); had == nil && depth > 0; depth-- {
			if v, _ := edit.Parse(before); v.Get(path[:depth]...) == nil {
				d.Delete(path[:depth]...)
			}
		}
		if !edit.Equal(d.Text(), before) {
			rt.Fatalf("%s became %s", before, d.Text())
		}
	})
}

// TestCommentsStay does the same beside comments, for a reader that accepts them.
func TestCommentsStay(t *testing.T) {
	const every = edit.Comments | edit.Mark
	rapid.Check(t, func(rt *rapid.T) {
		before := value(rt, 3, true, " // \"one\"\n", "/* two, { */", "\n  // three\r\n  ", " /* over\n two */ ")
		if rapid.Bool().Draw(rt, "mark") {
			before = append([]byte("\xef\xbb\xbf"), before...)
		}
		d, err := edit.ParseAs(before, every)
		if err != nil {
			rt.Fatalf("%s: %v", before, err)
		}
		was := jsontext.Value(d.Plain())
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b c", "new"}), 1, 3).Draw(rt, "path")
		had, count := d.Get(path...), len(d.Elements(path...))
		added := jsontext.Value(`{"added":[true]}`)
		if d.Append(added, path...) != nil {
			return
		}
		again, err := edit.ParseAs(d.Text(), every)
		if err != nil {
			rt.Fatalf("%s became %s: %v", before, d.Text(), err)
		}
		if all := again.Elements(path...); len(all) != count+1 || !edit.Equal(all[count], added) {
			rt.Fatalf("%s: it is not there in %s", path, d.Text())
		}
		d.Drop(count, path...)
		for depth := len(path); had == nil && depth > 0; depth-- {
			if v, _ := edit.ParseAs(before, every); v.Get(path[:depth]...) == nil {
				d.Delete(path[:depth]...)
			}
		}
		if !edit.Equal(d.Plain(), was) {
			rt.Fatalf("%s became %s", before, d.Text())
		}
		for _, comment := range []string{"// \"one\"", "/* two, { */", "// three", "/* over", "\xef\xbb\xbf"} {
			if a, b := strings.Count(string(before), comment), strings.Count(string(d.Text()), comment); a != b {
				rt.Fatalf("%d times %s became %d:\n%s\n%s", a, comment, b, before, d.Text())
			}
		}
	})
}

// TestACommentStaysOnItsLine checks where a new member goes.
func TestACommentStaysOnItsLine(t *testing.T) {
	for before, after := range map[string]string{
		"{\n  // mine\n  \"b\": 2 // two\n  // end\n}":     "{\n  // mine\n  \"b\": 2, // two\n  \"c\": 1\n  // end\n}",
		"{\n  \"b\": 2 /* two */, \"d\": 3 /* three\n */}": "{\n  \"b\": 2 /* two */, \"d\": 3, /* three\n */\n  \"c\": 1}",
		"{ // nothing yet\n}":                              "{ // nothing yet\n\n  \"c\": 1\n}",
		"{\"b\": 2 /* two */}":                             "{\"b\": 2, \"c\": 1 /* two */}",
	} {
		d, err := edit.ParseAs([]byte(before), edit.Comments)
		if err == nil {
			err = d.Set(jsontext.Value("1"), "c")
		}
		if diff := cmp.Diff(after, string(d.Text())); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// value returns any JSON value, in any formatting.
func value(t *rapid.T, depth int, object bool, comments ...string) jsontext.Value {
	space := rapid.SampledFrom(append([]string{"", " ", "\n", "\n  ", "\r\n\t"}, comments...))
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 && !object {
		kind %= 4
	}
	switch {
	case object, kind == 5:
		var b strings.Builder
		b.WriteString("{" + space.Draw(t, "space"))
		for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b c", "ü\\n", ""}), 0, 3, rapid.ID).Draw(t, "names") {
			if i > 0 {
				b.WriteString(space.Draw(t, "space") + ",")
			}
			b.WriteString(space.Draw(t, "space") + `"` + name + `"` + space.Draw(t, "space") + ":" + space.Draw(t, "space"))
			b.Write(value(t, max(depth-1, 0), false, comments...))
		}
		return jsontext.Value(b.String() + space.Draw(t, "space") + "}")
	case kind == 4:
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			parts = append(parts, space.Draw(t, "space")+string(value(t, depth-1, false, comments...))+space.Draw(t, "space"))
		}
		return jsontext.Value("[" + strings.Join(parts, ",") + "]")
	}
	return jsontext.Value([]string{"null", "true", "-1.5e3", `"//{[\""`}[kind])
}
