//go:build linux && (amd64 || arm64)

package cuda

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"entropipe/sparse/kern"
)

// Tolerance bounds the difference of a number of a result from package kern's, for
// values up to 1. For larger values it grows in proportion.
const Tolerance = 1e-4

// ErrAbsent reports that there is no driver or no GPU.
var ErrAbsent = errors.New("cuda: no NVIDIA GPU was found")

//go:generate python3 compile.py libnvrtc.so.12
//go:embed attend.ptx
var ptx string

// Device is one GPU. It serves one goroutine at a time. The owner must call Close.
type Device struct {
	driver  driver
	name    string
	handle  int32
	context uintptr
	module  uintptr
	attend  uintptr
	memory  []block // [slots] memory of earlier jobs
	host    jobs
}

// block is a piece of GPU memory.
type block struct {
	at   uint64
	size int
}

// driver holds the functions of the driver's library that this package calls. Every
// call returns a status, 0 for success.
type driver struct {
	init       func(flags uint32) int32
	count      func(n *int32) int32
	get        func(device *int32, ordinal int32) int32
	deviceName func(name *byte, n int32, device int32) int32
	retain     func(context *uintptr, device int32) int32
	release    func(device int32) int32
	setCurrent func(context uintptr) int32
	load       func(module *uintptr, image *byte) int32
	unload     func(module uintptr) int32
	function   func(f *uintptr, module uintptr, name *byte) int32
	alloc      func(at *uint64, size uintptr) int32
	free       func(at uint64) int32
	toDevice   func(to uint64, from unsafe.Pointer, size uintptr) int32
	fromDevice func(to unsafe.Pointer, from uint64, size uintptr) int32
	launch     func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, args *unsafe.Pointer,
		extra uintptr) int32
	synchronise func() int32
	errorName   func(status int32, name **byte) int32
}

// Open opens the first GPU. library is the file of the driver's library; "" means
// libcuda.so.1. Open returns ErrAbsent if there is no driver or no GPU; other errors
// name the step that failed.
func Open(library string) (*Device, error) {
	missing := library == ""
	if missing {
		library = "libcuda.so.1"
	}
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		if missing {
			return nil, ErrAbsent
		}
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d := &Device{}
	if err := d.driver.bind(handle); err != nil {
		return nil, err
	}
	if d.driver.init(0) != 0 {
		return nil, ErrAbsent
	}
	var n int32
	if d.driver.count(&n) != 0 || n == 0 {
		return nil, ErrAbsent
	}
	if err := d.begin(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// bind looks up the functions. It returns an error if the library lacks one.
func (d *driver) bind(handle uintptr) error {
	for name, f := range map[string]any{
		"cuInit": &d.init, "cuDeviceGetCount": &d.count, "cuDeviceGet": &d.get, "cuDeviceGetName": &d.deviceName,
		"cuDevicePrimaryCtxRetain": &d.retain, "cuDevicePrimaryCtxRelease_v2": &d.release,
		"cuCtxSetCurrent":  &d.setCurrent,
		"cuModuleLoadData": &d.load, "cuModuleUnload": &d.unload, "cuModuleGetFunction": &d.function,
		"cuMemAlloc_v2": &d.alloc, "cuMemFree_v2": &d.free, "cuMemcpyHtoD_v2": &d.toDevice,
		"cuMemcpyDtoH_v2": &d.fromDevice,
		"cuLaunchKernel":  &d.launch, "cuCtxSynchronize": &d.synchronise, "cuGetErrorName": &d.errorName,
	} {
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
		purego.RegisterFunc(f, at)
	}
	return nil
}

// begin makes the context and has the driver translate the kernel.
func (d *Device) begin() error {
	runtime.LockOSThread() // a context is bound to a thread
	defer runtime.UnlockOSThread()
	if err := d.check("cuDeviceGet", d.driver.get(&d.handle, 0)); err != nil {
		return err
	}
	name := make([]byte, 128)
	if err := d.check("cuDeviceGetName", d.driver.deviceName(&name[0], int32(len(name)), d.handle)); err != nil {
		return err
	}
	d.name = text(&name[0])
	if err := d.check("cuDevicePrimaryCtxRetain", d.driver.retain(&d.context, d.handle)); err != nil {
		return err
	}
	if err := d.check("cuCtxSetCurrent", d.driver.setCurrent(d.context)); err != nil {
		return err
	}
	image, function := append([]byte(ptx), 0), []byte("attend\x00")
	if err := d.check("cuModuleLoadData", d.driver.load(&d.module, &image[0])); err != nil {
		return err
	}
	return d.check("cuModuleGetFunction", d.driver.function(&d.attend, d.module, &function[0]))
}

// Name returns the name of the GPU.
func (d *Device) Name() string { return d.name }

// Close frees the GPU memory and the context. The Device must not be used
// afterwards.
func (d *Device) Close() {
	if d.context == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d.driver.setCurrent(d.context)
	for _, b := range d.memory {
		if b.size > 0 {
			d.driver.free(b.at)
		}
	}
	if d.module != 0 {
		d.driver.unload(d.module)
	}
	d.driver.release(d.handle)
	d.memory, d.context, d.module = nil, 0, 0
}

// check returns an error for a status other than success.
func (d *Device) check(call string, status int32) error {
	if status == 0 {
		return nil
	}
	var name *byte
	if d.driver.errorName(status, &name) == 0 && name != nil {
		return fmt.Errorf("cuda: %s: %s", call, text(name))
	}
	return fmt.Errorf("cuda: %s: error %d", call, status)
}

// text returns the string that ends at the first zero byte.
func text(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Attend computes the jobs as kern.Scratch.Attend does, one after the other, on the
// GPU. It returns an error if the GPU fails, if Dim is above 256, or if a job has
// Paged or LogSums, which only the processor supports. After an error the results
// are undefined.
func (d *Device) Attend(jobs []kern.Job) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.check("cuCtxSetCurrent", d.driver.setCurrent(d.context)); err != nil {
		return err
	}
	for i := range jobs {
		if j := &jobs[i]; j.Q.Rows > 0 {
			if err := d.run(j); err != nil {
				return err
			}
		}
	}
	return nil
}
