package plainjson_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/plainjson"
)

func TestFormsOfValues(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	many := &strings.Builder{}
	for i := range 80 {
		many.WriteString(`"` + strings.Repeat("n", 80-i) + `":1,`)
	}
	for value, want := range map[string]plainjson.Form{
		`1`: plainjson.Canonical, `"a\n"`: plainjson.Canonical, `{"a":1,"b":[true,null]}`: plainjson.Canonical, `{}`: plainjson.Canonical,
		`{"b":1,"a":2}`: plainjson.Unique, `{"a": 1}`: plainjson.Unique, `1.5`: plainjson.Unique, `"\u0041"`: plainjson.Unique, "\"\xff\"": plainjson.Unique, `{"é":1}`: plainjson.Unique,
		`{"a":{"a":1},"b":{"a":1}}`: plainjson.Canonical, `{"b":{"z":1,"a":1},"a":{"a":1}}`: plainjson.Unique,
		`{"a":1,"a":2}`: plainjson.Valid, `{"b":1,"a":1,"b":1}`: plainjson.Valid, `{"\u0061":1}`: plainjson.Valid, `{"a":{"x":1,"x":2}}`: plainjson.Valid,
		`{` + many.String() + `"z":1}`: plainjson.Valid,
	} {
		found := false
		if ok := plainjson.Members([]byte(`{"v":`+value+`}`), func(name, v []byte, form plainjson.Form) {
			found = string(name) == "v" && string(v) == value && form == want
		}); !ok || !found {
			t.Errorf("%s does not have the form %d", value, want)
		}
	}
	for _, data := range []string{``, `1`, `{`, `{"a":1`, `{"a":1,}`, `{"a" 1}`, `{"a":01}`, `{"a":tru}`, `{"a":"\x"}`, `{"\u0061":1}`, `{"a":` + deep + `}`} {
		if plainjson.Members([]byte(data), func(_, _ []byte, _ plainjson.Form) {}) {
			t.Errorf("%s is accepted", data)
		}
	}
}

func TestAMemberWithAnUnknownOptionIsRefused(t *testing.T) {
	type embedded struct {
		Name string `json:",embed"`
	}
	type formatted struct {
		N int `json:"n,string"`
	}
	for name, of := range map[string]func(){"embedded": func() { plainjson.Of[embedded]() }, "formatted": func() { plainjson.Of[formatted]() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s has a codec", name)
				}
			}()
			of()
		}()
	}
}

// A method for JSON decides the form of its type, so the table cannot.
type custom struct{ N int }

func (custom) MarshalText() ([]byte, error) { return []byte("custom"), nil }

func TestForeignMembersArePlainOnlyIfTheyAreAbsent(t *testing.T) {
	type message struct {
		Name  string  `json:"name"`
		Own   custom  `json:"own,omitzero"`
		Other float64 `json:"other,omitzero"`
	}
	c := plainjson.Of[message]()
	if data, ok := c.Append(nil, &message{Name: "a"}); !ok || string(data) != `{"name":"a"}` {
		t.Errorf("it is written %s (%t)", data, ok)
	}
	for _, m := range []message{{Own: custom{1}}, {Other: 1}, {Name: `"`}, {Name: "é"}} {
		if data, ok := c.Append(nil, &m); ok {
			t.Errorf("%+v is written %s", m, data)
		}
	}
	for _, data := range []string{`{"name":"a","other":1}`, `{"own":"custom"}`, `{"name":1}`, `{"name":"a","name":"b"}`, `{"name":"a"}x`, `{"more":1}`} {
		m := message{Name: "before"}
		if c.Read([]byte(data), &m) || m.Name != "before" {
			t.Errorf("%s is read as %+v", data, m)
		}
	}
	long := `{"name":"` + strings.Repeat("a", 20<<10) + `"}`
	if m := new(message); !c.Read([]byte(long), m) || len(m.Name) != 20<<10 {
		t.Errorf("a long message is read with %d bytes", len(m.Name))
	}
}
