package pebblestore
import ("testing";"os";"fmt";"os/exec")
func TestZZ(t *testing.T){
 for _, minFree := range []int{1, 16<<20} {
	dir := fmt.Sprintf("/tmp/ddq/tm/d%d", minFree)
	s, err := Open(Config{Dir: dir, MemTable: 4<<20, MinFree: minFree}, quiet)
	if err != nil { t.Fatal(err) }
	l := newLedger()
	shard := crashShards[0]
	fence := claim(t, s, shard)
	err = churn(s, shard, fence, 200, l.note)
	fmt.Println("ended:", err, len(l.marks))
	_, err2 := s.Stats(t.Context(), crashShards); fmt.Println("stats:", err2)
	fmt.Println("close:", s.Close())
	out,_ := exec.Command("cp","-r",dir,dir+"-copy-on-root").CombinedOutput(); _ = out
	os.RemoveAll("/tmp/ddq/copy"); exec.Command("cp","-r",dir,"/tmp/ddq/copy").Run(); os.RemoveAll(dir); os.RemoveAll(dir+"-copy-on-root")
	s2, err := Open(Config{Dir: "/tmp/ddq/copy"}, quiet)
	if err != nil { t.Fatal(err) }
	verify(t, s2, crashShards, l.copy())
	fmt.Println("verified", len(l.marks)); s2.Close()
 }
}
