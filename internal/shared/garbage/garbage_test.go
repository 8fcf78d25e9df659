package garbage

import "testing"

func TestHowMuchGarbageMayWait(t *testing.T) {
	t.Parallel()
	for inUse, want := range map[uint64]int{0: 100, 1: 100, 50 << 20: 100, 192 << 20: 100, 384 << 20: 50, 512 << 20: 37, 768 << 20: 25, 1 << 40: 25} {
		if got := garbagePercent(inUse); got != want {
			t.Errorf("%d%% of %d MiB, want %d%%", got, inUse>>20, want)
		}
	}
}
