"""Compiles attend.cu to attend.ptx with NVRTC (PyPI: nvidia-cuda-nvrtc); no GPU is
needed. PTX for compute capability 7.5 runs on everything newer.

    python3 sparse/cuda/compile.py PATH-OF-libnvrtc.so
"""
import ctypes
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def main():
    nvrtc = ctypes.CDLL(sys.argv[1])
    source = (HERE / "attend.cu").read_bytes().replace(b"#define WARP 32", b"#define INFINITY __int_as_float(0x7f800000)\n#define WARP 32")
    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"attend.cu", 0, None, None))
    options = [b"--gpu-architecture=compute_75", b"--std=c++14", b"--fmad=true"]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    if status:
        check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetProgramLog(program, log))
        sys.exit(log.value.decode())
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    (HERE / "attend.ptx").write_bytes(ptx.value)


def check(status):
    if status:
        sys.exit(f"NVRTC: error {status}")


main()
