/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c -- stands in for the driver's library, libcuda.so.1, where there is none: cuDNN compiles kernels for a described device by itself, and then wants to load
 * them. Loading succeeds and does nothing; there is no device, and everything else says so. For tests/cuda/support.c alone.
 */
enum { SUCCESS = 0, NO_DEVICE = 100 };

#define ANSWERS(name, answer)                                                                                \
    int name(void);                                                                                          \
    int name(void) { return answer; }
/* gives something by its first argument */
#define GIVES(name)                                                                                          \
    int name(void **out);                                                                                    \
    int name(void **out)                                                                                     \
    {                                                                                                        \
        static char thing;                                                                                   \
        *out = &thing;                                                                                       \
        return SUCCESS;                                                                                      \
    }

GIVES(cuLibraryLoadData)
GIVES(cuLibraryGetKernel)
GIVES(cuModuleLoadData)
GIVES(cuModuleLoadDataEx)
GIVES(cuModuleLoadFatBinary)
GIVES(cuModuleGetFunction)
ANSWERS(cuLibraryUnload, SUCCESS)
ANSWERS(cuModuleUnload, SUCCESS)
ANSWERS(cuKernelSetAttribute, SUCCESS)
ANSWERS(cuFuncSetAttribute, SUCCESS)

ANSWERS(cuCtxGetCurrent, NO_DEVICE)
ANSWERS(cuCtxGetDevice, NO_DEVICE)
ANSWERS(cuCtxGetLimit, NO_DEVICE)
ANSWERS(cuCtxPopCurrent, NO_DEVICE)
ANSWERS(cuCtxPushCurrent, NO_DEVICE)
ANSWERS(cuDeviceGet, NO_DEVICE)
ANSWERS(cuDeviceGetAttribute, NO_DEVICE)
ANSWERS(cuDeviceGetCount, NO_DEVICE)
ANSWERS(cuDevicePrimaryCtxRelease, NO_DEVICE)
ANSWERS(cuDevicePrimaryCtxReset, NO_DEVICE)
ANSWERS(cuDevicePrimaryCtxRetain, NO_DEVICE)
ANSWERS(cuDriverGetVersion, NO_DEVICE)
ANSWERS(cuFuncGetAttribute, NO_DEVICE)
ANSWERS(cuGetErrorName, NO_DEVICE)
ANSWERS(cuGetErrorString, NO_DEVICE)
ANSWERS(cuInit, NO_DEVICE)
ANSWERS(cuKernelGetAttribute, NO_DEVICE)
ANSWERS(cuLaunchCooperativeKernel, NO_DEVICE)
ANSWERS(cuLaunchKernel, NO_DEVICE)
ANSWERS(cuLaunchKernelEx, NO_DEVICE)
ANSWERS(cuLibraryLoadFromFile, NO_DEVICE)
ANSWERS(cuLinkAddData, NO_DEVICE)
ANSWERS(cuLinkAddData_v2, NO_DEVICE)
ANSWERS(cuLinkAddFile_v2, NO_DEVICE)
ANSWERS(cuLinkComplete, NO_DEVICE)
ANSWERS(cuLinkCreate, NO_DEVICE)
ANSWERS(cuLinkCreate_v2, NO_DEVICE)
ANSWERS(cuLinkDestroy, NO_DEVICE)
ANSWERS(cuMemcpyDtoH_v2, NO_DEVICE)
ANSWERS(cuModuleGetGlobal_v2, NO_DEVICE)
ANSWERS(cuOccupancyMaxActiveBlocksPerMultiprocessor, NO_DEVICE)
ANSWERS(cuOccupancyMaxPotentialClusterSize, NO_DEVICE)
ANSWERS(cuStreamGetCtx, NO_DEVICE)
ANSWERS(cuStreamSynchronize, NO_DEVICE)
ANSWERS(cuTensorMapEncodeTiled, NO_DEVICE)
