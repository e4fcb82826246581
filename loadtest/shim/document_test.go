package shim

import "testing"

func TestTheReportAsADocument(t *testing.T) {
	three := func(took float64) []sample { return []sample{{took: took}, {took: took}, {took: took}} }
	samples := map[string][]sample{baseline: three(1), direct: three(2), byDaemon: three(3), versioned: three(1)}
	r := judged(Options{Repetitions: 3}, samples)
	r.Binary, r.Daemon.Calls = 5<<20, 1
	r.document()
	if err := r.Sound(); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 || len(r.Figures) != 4 || r.Document.OK() || r.Document.OK() != r.OK() {
		t.Errorf("of %+v there are the figures %+v", r.Rows, r.Figures)
	}
	if size := r.Figures[3]; size.Unit != "B" || size.Value != 5<<20 {
		t.Errorf("the program's size is %+v", size)
	}
	if len(r.Tables) != 2 || len(r.Tables[0].Rows) != 4 {
		t.Errorf("the tables are %+v", r.Tables)
	}
	r.Daemon = Daemon{}
	if r.document(); len(r.Tables) != 1 {
		t.Errorf("of a daemon that was not measured there are the tables %+v", r.Tables)
	}
}
