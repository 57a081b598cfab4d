package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// start serves on a free port until the test ends.
func start(t *testing.T, l *limits) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, l) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("shutdown: %v", err)
			}
		case <-time.After(15 * time.Second):
			t.Error("the server did not shut down")
		}
	})
	return "http://" + listener.Addr().String()
}

// get makes one request and returns its status and Retry-After.
func get(t *testing.T, url, user, merchant string) (status int, retryAfter string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("X-User", user)
	req.Header.Set("X-Merchant", merchant)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// drive makes requests at a steady pace and counts those that were admitted.
func drive(t *testing.T, url, user string, perSecond int, lasting time.Duration) (admitted, refused int) {
	t.Helper()
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for end := time.Now().Add(lasting); time.Now().Before(end); <-ticker.C {
		switch status, retryAfter := get(t, url, user, "shop"); status {
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
			refused++
			if seconds, err := strconv.Atoi(retryAfter); err != nil || seconds < 1 {
				t.Errorf("user %s: Retry-After %q, want whole seconds, at least 1", user, retryAfter)
			}
		default:
			t.Errorf("user %s: status %d", user, status)
		}
	}
	return admitted, refused
}

func TestServerUnderThreeTimesTheLimit(t *testing.T) {
	l := newLimits()
	url := start(t, l)

	const lasting = 2 * time.Second
	var greedy, modest struct{ admitted, refused int }
	begin := time.Now()
	var users sync.WaitGroup
	users.Go(func() { greedy.admitted, greedy.refused = drive(t, url, "greedy", 30, lasting) })
	users.Go(func() { modest.admitted, modest.refused = drive(t, url, "modest", 5, lasting) })
	users.Wait()
	took := time.Since(begin)
	left := l.merchants.For("shop").Decide(0).Remaining

	// The bound holds however slow the machine is.
	most := float64(userPolicy.Limit()) + 10*took.Seconds()
	t.Logf("in %v: greedy %+v, modest %+v", took, greedy, modest)
	if float64(greedy.admitted) > most {
		t.Errorf("greedy: %d admitted in %v, want at most %.1f", greedy.admitted, took, most)
	}
	if least := min(userPolicy.Limit(), greedy.admitted+greedy.refused); greedy.admitted < least {
		t.Errorf("greedy: %+v, want at least %d admitted", greedy, least)
	}
	if modest.admitted == 0 || modest.refused != 0 {
		t.Errorf("modest: %+v, want none refused", modest)
	}
	// What the user's budget refuses costs the merchant nothing.
	if least := merchantPolicy.Limit() - greedy.admitted - modest.admitted; left < least {
		t.Errorf("left to the merchant: %d, want at least %d", left, least)
	}
}

func TestObeyingRetryAfterGetsIn(t *testing.T) {
	url := start(t, newLimits())
	status, retryAfter := http.StatusOK, ""
	for i := 0; status == http.StatusOK && i < 1000; i++ {
		status, retryAfter = get(t, url, "ann", "shop")
	}
	seconds, err := strconv.Atoi(retryAfter)
	if status != http.StatusTooManyRequests || err != nil {
		t.Fatalf("status %d, Retry-After %q; want 429 and whole seconds", status, retryAfter)
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	if status, _ := get(t, url, "ann", "shop"); status != http.StatusOK {
		t.Errorf("status %d after a wait of %d s, want 200", status, seconds)
	}
}

func TestRequestWithoutUser(t *testing.T) {
	url := start(t, newLimits())
	if status, _ := get(t, url, "", "shop"); status != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", status)
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		if got := retryAfter(wait); got != want {
			t.Errorf("retryAfter(%v) = %s, want %s", wait, got, want)
		}
	}
}
