// The constants of CUDA's header of this name that softmax kernels use.
#pragma once

#include <math.h>

#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_L2E_F 1.4426950408889634f
#define CUDART_LN2_F 0.6931471805599453f
