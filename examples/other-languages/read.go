package main // lists the calls of a recording and checks its chains: go run read.go RECORDING; exit code 1: a line was changed

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	files, _ := filepath.Glob(filepath.Join(os.Args[1], "*.jsonl"))
	sessions, _ := filepath.Glob(filepath.Join(os.Args[1], "sessions", "*.jsonl"))
	for _, file := range append(files, sessions...) {
		if strings.HasSuffix(file, ".content.jsonl") {
			continue
		}
		prev, count := strings.Repeat("0", 64), 0
		data, _ := os.ReadFile(file)
		for line, rest, more := bytes.Cut(data, []byte("\n")); more; line, rest, more = bytes.Cut(rest, []byte("\n")) {
			count++ // {"event":E,"hash":H,"prevHash":P}, H = sha256(P + "|" + E): E is cut out, never parsed to be hashed
			event, body := map[string]any{}, []byte{}
			if len(line) > 162 {
				body = line[9 : len(line)-153]
			}
			hash := fmt.Sprintf("%x", sha256.Sum256(append([]byte(prev+"|"), body...)))
			if string(line) != fmt.Sprintf(`{"event":%s,"hash":"%s","prevHash":"%s"}`, body, hash, prev) {
				fmt.Println("CHANGED", filepath.Base(file), "line", count)
				os.Exit(1)
			}
			if json.Unmarshal(body, &event); event["type"] == "NODE_RECORDED" {
				fmt.Println(event["seq"], event["payload"].(map[string]any)["type"], event["payload"].(map[string]any)["name"])
			}
			prev = hash
		}
		fmt.Printf("%s: %d lines read\n", filepath.Base(file), count)
	}
}
