package box

import (
	"os/exec"
	"testing"
)

func TestParseInfo(t *testing.T) {
	got := parseInfo("# Memory\r\nused_memory:1234\r\nused_memory_human:1.2K\r\n\r\nnonsense\r\n")
	if got["used_memory"] != "1234" || got["used_memory_human"] != "1.2K" || len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestStartRedisKeepsAnAppendOnlyFile(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	redis, err := StartRedis(t.Context(), newTestBox(t), "always")
	if err != nil {
		t.Fatal(err)
	}
	info, err := redisInfo(t.Context(), redis.Addr, "persistence")
	if err != nil {
		t.Fatal(err)
	}
	if info["aof_enabled"] != "1" {
		t.Errorf("aof_enabled is %q, want 1", info["aof_enabled"])
	}
	if used, err := UsedMemory(t.Context(), redis.Addr); err != nil || used <= 0 {
		t.Errorf("used memory: got %d, %v", used, err)
	}
}
