package report

import (
	"fmt"
	"testing"
)

func TestWhatIsOK(t *testing.T) {
	for name, c := range map[string]struct {
		d    Document
		want bool
	}{
		"a run that promised nothing":                      {Document{}, true},
		"a promise that was kept":                          {Document{Checks: []Check{{Seen: 3}}}, true},
		"a promise that was broken once":                   {Document{Checks: []Check{{Seen: 3, Wrong: 1}}}, false},
		"a promise that was never put to the test":         {Document{Checks: []Check{{Least: 1}}}, false},
		"a time within its budget":                         {Document{Figures: []Figure{Figure{Value: 2, Low: 1, High: 3}.Within(2)}}, true},
		"a time over it":                                   {Document{Figures: []Figure{Figure{Value: 2.1, Low: 1, High: 3}.Within(2)}}, false},
		"a rate that reaches it":                           {Document{Figures: []Figure{Figure{Better: Higher, Value: 2, Low: 1, High: 3}.Within(2)}}, true},
		"a rate that does not":                             {Document{Figures: []Figure{Figure{Better: Higher, Value: 1.9, Low: 1, High: 3}.Within(2)}}, false},
		"a figure that only describes, whatever it may be": {Document{Figures: []Figure{Figure{Better: Neither, Value: 9}.Within(2)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.d.OK(); got != c.want {
				t.Errorf("OK is %v", got)
			}
		})
	}
}

func TestExamplesAreFew(t *testing.T) {
	var d Document
	for i := range 3 * mostExamples {
		d.Check("nothing is wrong").Fail(fmt.Sprint(i))
	}
	c := d.Check("nothing is wrong")
	c.Add(Check{Seen: 1, Wrong: 2, Examples: []string{"a", "b"}})
	if len(d.Checks) != 1 || c.Wrong != 3*mostExamples+2 || c.Seen != 1 || len(c.Examples) != mostExamples {
		t.Errorf("the check is %+v, one of %d", c, len(d.Checks))
	}
}
