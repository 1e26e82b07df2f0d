package terminaltest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// Open opens a pseudo-terminal of 24 rows and returns its two ends: the test's and the
// program's. Both are closed when the test ends. Where the system has no
// pseudo-terminals the test is skipped.
func Open(t *testing.T, columns uint16) (here, there *os.File) {
	t.Helper()
	here, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { here.Close() })
	var lock, n int32
	size := [4]uint16{24, columns}
	control := func(f *os.File, what uintptr, with unsafe.Pointer) {
		t.Helper()
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), what, uintptr(with)); code != 0 {
			t.Skipf("no pseudo-terminals here: %v", code)
		}
	}
	control(here, syscall.TIOCSPTLCK, unsafe.Pointer(&lock))
	control(here, syscall.TIOCGPTN, unsafe.Pointer(&n))
	there, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { there.Close() })
	control(there, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	return here, there
}
