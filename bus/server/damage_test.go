package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
)

// A harm damages the file of a message block, or a file beside it.
type harm struct {
	name string
	do   func(path string) error
	// loses: the stream then lacks messages.
	loses bool
}

// harms returns the damages for each block, with bit flips in each part of a record.
func harms() []harm {
	rewrite := func(change func([]byte) []byte) func(string) error {
		return func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, change(data), 0o600)
		}
	}
	flip := func(at func(size int) int) func(string) error {
		return rewrite(func(b []byte) []byte { b[at(len(b))] ^= 1; return b })
	}
	return []harm{
		{"emptied", rewrite(func([]byte) []byte { return nil }), true},
		{"cut in the middle", rewrite(func(b []byte) []byte { return b[:len(b)/2] }), true},
		{"one byte short", rewrite(func(b []byte) []byte { return b[:len(b)-1] }), true},
		{"zeroed", rewrite(func(b []byte) []byte { clear(b); return b }), true},
		{"its end zeroed", rewrite(func(b []byte) []byte { clear(b[len(b)-20:]); return b }), true},
		{"a bit of the first length", flip(func(int) int { return 0 }), true},
		{"a bit of the first sequence", flip(func(int) int { return 4 }), true},
		{"a bit of the first subject", flip(func(int) int { return 24 }), true},
		{"a bit in the middle", flip(func(n int) int { return n / 2 }), true},
		{"a bit of the last checksum", flip(func(n int) int { return n - 1 }), true},
		{"removed", os.Remove, true},
		{"its index removed", func(path string) error { return os.Remove(filepath.Join(filepath.Dir(path), "index.db")) }, false},
		{"its index emptied", func(path string) error { return os.Truncate(filepath.Join(filepath.Dir(path), "index.db"), 0) }, false},
		{"nothing", func(string) error { return nil }, false},
	}
}

// The server was stopped or killed before. It must not change the store, so it refuses a second start, too.
func TestAServerDoesNotStartOnADamagedStore(t *testing.T) {
	bustest.PlainOnly(t, "all damages: each is found before anything runs beside the start")
	t.Parallel()
	dir := t.TempDir()
	s := fill(t, dir)
	killed := t.TempDir() // a copy of the files of a running server, as after a kill
	waitForLasts(t, dir)
	copyTree(t, dir, killed)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for how, left := range map[string]string{"stopped": dir, "killed": killed} {
		for _, block := range blocksIn(t, left) {
			stream := filepath.Base(filepath.Dir(filepath.Dir(block)))
			last := block == lastBlock(t, block)
			for _, d := range harms() {
				if how == "killed" && (strings.Contains(d.name, "index") || !last && (d.name == "removed" || d.name == "emptied")) {
					continue // it has no index yet, and a block without messages may be missing
				}
				t.Run(fmt.Sprintf("%s/%s/%s/%s", how, stream, filepath.Base(block), d.name), func(t *testing.T) {
					t.Parallel()
					at := t.TempDir()
					copyTree(t, left, at)
					rel, err := filepath.Rel(left, block)
					if err := errors.Join(err, d.do(filepath.Join(at, rel))); err != nil {
						t.Fatal(err)
					}
					if !d.loses {
						mustStart(t, at)
						return
					}
					for range 2 {
						_, err := server.Start(t.Context(), server.Options{Dir: at})
						wantError(t, err, filepath.Join("streams", stream)+" is damaged: ")
						wantError(t, err, "restore the data directory from a backup; or, to continue without the messages of this stream, move that folder away and delete the line of "+stream)
					}
				})
			}
		}
	}
}

// The error says how to continue without the damaged stream. All other streams stay.
func TestTheErrorOfADamagedStoreSaysHowToContinue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := fill(t, dir).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	account := filepath.Join(dir, "nats", "jetstream", "$G")
	folder := filepath.Join(account, "streams", "KV_freezes")
	if err := os.Rename(folder, filepath.Join(t.TempDir(), "damaged")); err != nil {
		t.Fatal(err)
	}
	_, err := server.Start(t.Context(), server.Options{Dir: dir})
	wantError(t, err, folder+" is damaged: it is missing, with all messages up to 3")
	lasts := filepath.Join(account, "lasts")
	said, err := os.ReadFile(lasts)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(said), "\n"), func(line string) bool { return strings.HasPrefix(line, "KV_freezes ") })
	if err := os.WriteFile(lasts, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	mustStart(t, dir)
	if err := os.WriteFile(lasts, []byte("KV_many x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = server.Start(t.Context(), server.Options{Dir: dir})
	wantError(t, err, lasts+" is damaged: ")
	wantError(t, err, "or delete that file if all streams are intact")
	if err := os.Remove(lasts); err != nil { // as an earlier release left it
		t.Fatal(err)
	}
	mustStart(t, dir)
}

// A record that was being written at a kill, or when the disk was full, was never acknowledged.
func TestAnIncompleteLastRecordIsNoDamage(t *testing.T) {
	bustest.PlainOnly(t, "all records that were cut: one start after the other")
	t.Parallel()
	dir := t.TempDir()
	s := fill(t, dir)
	killed := t.TempDir()
	waitForLasts(t, dir)
	copyTree(t, dir, killed)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, rest := range [][]byte{{1}, make([]byte, 500), []byte(strings.Repeat("half", 10))} {
		for _, block := range blocksIn(t, killed) {
			if block != lastBlock(t, block) {
				continue
			}
			at := t.TempDir()
			copyTree(t, killed, at)
			rel, err := filepath.Rel(killed, block)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(filepath.Join(at, rel), os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(rest); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			mustStart(t, at)
		}
	}
}

// The files of a running server are damaged before JetStream is restarted.
func TestJetStreamDoesNotRestartOnADamagedStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fill(t, dir)
	waitForLasts(t, dir)
	block := filepath.Join(dir, "nats", "jetstream", "$G", "streams", "KV_freezes", "msgs", "1.blk")
	whole, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(block, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Mend(), "KV_freezes is damaged: ")
	if s.Stores() {
		t.Error("JetStream runs on a damaged store")
	}
	if err := os.WriteFile(block, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Mend(); err != nil || !s.Stores() {
		t.Errorf("as it was: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// In a cluster a leader with a damaged store would make the others delete messages.
func TestADamagedServerOfAClusterStartsEmpty(t *testing.T) {
	t.Parallel()
	routes := bustest.FreeAddresses(t, 3)
	all := make([]server.Options, len(routes))
	servers := make([]*server.Server, len(routes))
	for i := range all {
		all[i] = member(t, routes, i)
		s, err := server.Start(t.Context(), all[i])
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = s
	}
	await := func(s *server.Server) {
		t.Helper()
		if err := s.Await(t.Context(), 3, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	await(servers[0])
	nc, err := servers[1].Connect(t.Context(), bus.Options{Name: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	bucket := createBucket(t, js)
	for i := range 20 {
		if _, err := bucket.Put(t.Context(), fmt.Sprint("key", i), make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
	}
	awaitCopies(t, js, "KV_freezes")
	if err := servers[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(all[0].Dir, "nats")
	if err := os.Truncate(filepath.Join(store, "jetstream", "$G", "streams", "KV_freezes", "msgs", "1.blk"), 5000); err != nil {
		t.Fatal(err)
	}
	_, err = server.Start(t.Context(), all[0])
	wantError(t, err, "KV_freezes is damaged: ")
	wantError(t, err, "; move the folder "+store+" away and start the server again: it copies the stream from the others of its cluster")
	if err := os.Rename(store, store+".damaged"); err != nil {
		t.Fatal(err)
	}
	if servers[0], err = server.Start(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	await(servers[0])
	awaitCopies(t, js, "KV_freezes")
	for _, s := range servers {
		_ = s.Close(context.Background())
	}
}

// createBucket creates a bucket with three copies, once the leader knows what the others can store.
func createBucket(t *testing.T, js jetstream.JetStream) (bucket jetstream.KeyValue) {
	t.Helper()
	ctx := within(t)
	bustest.Eventually(t, "the bucket is created", func() bool {
		var err error
		bucket, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "freezes", MaxBytes: 1 << 20, Replicas: 3})
		return err == nil
	})
	return bucket
}

// awaitCopies waits until all three servers have all of a stream.
func awaitCopies(t *testing.T, js jetstream.JetStream, stream string) {
	t.Helper()
	ctx := within(t)
	bustest.Eventually(t, "all servers have everything", func() bool {
		s, err := js.Stream(ctx, stream)
		return err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().State.Msgs == 20 &&
			!slices.ContainsFunc(s.CachedInfo().Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Lag > 0 })
	})
}

// fill starts a server and stores a few streams: one small bucket, one whose messages are
// in several blocks, some of them deleted, and one of which all are deleted.
func fill(t *testing.T, dir string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), server.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect(t.Context(), bus.Options{Name: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"freezes": 3, "many": 60, "gone": 4} {
		bucket, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name, MaxBytes: 120_000, History: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, err := bucket.Put(t.Context(), fmt.Sprint("key", i%50), make([]byte, 1500+7*i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	st, err := js.Stream(t.Context(), "KV_gone")
	if err == nil {
		err = st.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waitForLasts waits until it is written down how far the streams reach.
func waitForLasts(t *testing.T, dir string) {
	t.Helper()
	waitForFile(t, filepath.Join(dir, "nats", "jetstream", "$G", "lasts"), "KV_freezes 3\nKV_gone 4\nKV_many 60\n")
}

// waitForAccounts waits until it is written down which accounts have streams.
func waitForAccounts(t *testing.T, dir, want string) {
	t.Helper()
	waitForFile(t, filepath.Join(dir, "accounts"), want)
}

// waitForFile waits until a file holds a text.
func waitForFile(t *testing.T, path, want string) {
	t.Helper()
	bustest.Eventually(t, path+" holds "+want, func() bool {
		said, _ := os.ReadFile(path)
		return string(said) == want
	})
}

// mustStart starts a server, and stops it again.
func mustStart(t *testing.T, dir string) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// blocksIn are the files of all message blocks that hold something.
func blocksIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			found = append(found, path)
		}
	}
	if len(found) < 5 {
		t.Fatalf("there are %d blocks: %q", len(found), found)
	}
	return found
}

// lastBlock is the last of the blocks beside one.
func lastBlock(t *testing.T, block string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.Dir(block), "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.MaxFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// An earlier release had the record's blocks packed.
func TestPackedBlocksAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Options{Dir: dir, SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect(t.Context(), bus.Options{Name: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "packed", Subjects: []string{"packed"}, MaxBytes: 120_000, Compression: jetstream.S2Compression})
	}
	for i := 0; err == nil && i < 60; i++ {
		_, err = js.Publish(t.Context(), "packed", []byte(strings.Repeat(fmt.Sprint(i), 700)))
	}
	nc.Close()
	if err := errors.Join(err, s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	block := filepath.Join(dir, "nats", "jetstream", "$G", "streams", "packed", "msgs", "1.blk")
	data, err := os.ReadFile(block)
	if err != nil || !strings.HasPrefix(string(data), "cmp") {
		t.Fatalf("the first block is not packed: %.8q, %v", data, err)
	}
	mustStart(t, dir)
	data[len(data)/2] ^= 1
	if err := os.WriteFile(block, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = server.Start(t.Context(), server.Options{Dir: dir})
	wantError(t, err, "packed is damaged: "+block+" cannot be read from byte 0 on")
}
