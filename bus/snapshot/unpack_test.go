package snapshot_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/snapshot"
)

// archive writes headers, each with as many bytes as it says.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	gz, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	w := tar.NewWriter(gz)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", 64)), min(h.Size, 64)); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close() // one that holds less than it says cannot be closed
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1, Mode: 0o644}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func dir(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}
}

// hostile are archives that are refused, by what is wrong with them.
func hostile(t testing.TB) map[string][]byte {
	t.Helper()
	many := make([]tar.Header, snapshot.MaxFiles+1)
	for i := range many {
		many[i] = file(fmt.Sprint(i))
	}
	deep := []tar.Header{}
	for i := range snapshot.MaxDepth + 2 {
		deep = append(deep, dir(strings.TrimSuffix(strings.Repeat("d/", i+1), "/")))
	}
	whole := archive(t, file("f"))
	// What is compressed part by part is one file to who reads it.
	var part bytes.Buffer
	gz, _ := gzip.NewWriterLevel(&part, gzip.BestSpeed)
	_, _ = io.CopyN(gz, zeros{}, 4<<20)
	_ = gz.Close()
	return map[string][]byte{
		"a name that goes up":                 archive(t, file("../f")),
		"a name that goes up in between":      archive(t, dir("d"), file("d/../../f")),
		"a name that goes up and down":        archive(t, file("d/../f")),
		"an absolute name":                    archive(t, file("/f")),
		"an absolute name after a dot":        archive(t, file(".//f")),
		"two dots alone":                      archive(t, file("..")),
		"a file that is the folder":           archive(t, file(".")),
		"a name with a link in it":            archive(t, dir("d"), link("l", "d"), file("l/f")),
		"a link out of the folder":            archive(t, link("l", "../x")),
		"an absolute link":                    archive(t, link("l", "/etc/passwd")),
		"a link with dots behind a name":      archive(t, dir("d"), link("d/l", "x/../../../y")),
		"a link in a long form":               archive(t, dir("d"), link("l", "d/../f")),
		"a link to nowhere":                   archive(t, link("l", "")),
		"a hard link":                         archive(t, file("f"), tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "f"}),
		"a pipe":                              archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "p"}),
		"a device":                            archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "p", Devmajor: 1, Devminor: 3}),
		"the same name twice":                 archive(t, file("f"), file("f")),
		"a file where a folder is":            archive(t, dir("d"), file("d")),
		"a file in a file":                    archive(t, file("f"), file("f/g")),
		"a file without its folder":           archive(t, file("d/f")),
		"a huge file":                         archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: snapshot.MaxBytes + 1}),
		"files that are huge together":        archive(t, file("e"), tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: snapshot.MaxBytes}),
		"too many files":                      archive(t, many...),
		"too many folders in one another":     archive(t, deep...),
		"a file that ends before its size":    archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1 << 20}),
		"an archive that was cut off":         whole[:len(whole)/2],
		"an archive with another sum":         append(append([]byte{}, whole[:len(whole)-5]...), 0, 0, 0, 0, 0),
		"nothing":                             nil,
		"what is no archive":                  []byte("PK\x03\x04"),
		"an archive that does not end":        bytes.Repeat(part.Bytes(), 100),
		"a name that no file system may have": archive(t, file(strings.Repeat("n", 300))),
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestHostileArchivesAreRefusedAndChangeNothing(t *testing.T) {
	for name, data := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			to := filepath.Join(base, "to")
			old := tree{"old": "file x"}
			old.make(t, to)
			err := snapshot.Unpack(t.Context(), bytes.NewReader(data), to)
			if err == nil || !strings.HasPrefix(err.Error(), "unpacking into the folder "+to+": ") {
				t.Errorf("error %v", err)
			}
			if name != "a name that no file system may have" && !errors.Is(err, snapshot.ErrBad) && !errors.Is(err, snapshot.ErrTooLarge) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tree{"to": "dir", "to/old": "file x", ".to.lock": "file "}, read(t, base)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestArchivesOfOthersCanBeUnpacked(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to")
	data := archive(t, dir("."), dir("./d"), file("./d/f"), link("l", "d/f"))
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(data), to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree{"d": "dir", "d/f": "file x", "l": "-> d/f"}, read(t, to)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// FuzzUnpack checks that no archive writes outside of the folder or makes a link out of it, and that the folder is
// complete or missing.
func FuzzUnpack(f *testing.F) {
	for _, data := range hostile(f) {
		if plain, err := gunzip(data); err == nil && len(plain) < 16<<10 {
			f.Add(plain)
		}
	}
	plain, _ := gunzip(archive(f, dir("d"), file("d/f"), link("l", "d/f")))
	f.Add(plain)
	f.Fuzz(func(t *testing.T, plain []byte) {
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		_, _ = gz.Write(plain)
		_ = gz.Close()
		base := t.TempDir()
		to := filepath.Join(base, "to")
		err := snapshot.Unpack(t.Context(), &b, to)
		want := []string{".to.lock"}
		if err == nil {
			want = append(want, "to")
		}
		var got []string
		entries, _ := os.ReadDir(base)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("beside the folder, want -, got +:\n%s\n%v", diff, err)
		}
		if err != nil {
			return
		}
		noLinkLeadsOut(t, to)
		if _, left := pack(t, to); len(left) > 0 {
			t.Errorf("what was unpacked cannot be packed: %v", left)
		}
	})
}

func noLinkLeadsOut(t *testing.T, to string) {
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name := range read(t, to) {
		if _, err := root.Stat(name); err != nil && strings.Contains(err.Error(), "escapes") {
			t.Error(err)
		}
	}
}

func gunzip(data []byte) ([]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(gz, 1<<20))
}
