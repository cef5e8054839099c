//! Permission to use vector instructions, and kernels that are compiled for each kind of them.
//!
//! A variant of [`Vectors`] holds a token that only a look at the processor hands out, so a kernel that gets one may run without a
//! further check. The plain variant is the twin that tests hold the others to.

/// The processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// The processor has AVX-512 with its byte, double-word and short-vector parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// The instructions that a kernel may use.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "other processors have the plain twin only"))]
pub(crate) enum Vectors {
    Plain,
    Avx2(Avx2),
    Avx512(Avx512),
}

impl Avx2 {
    /// The token, if this processor has the instructions.
    #[inline]
    fn detect() -> Option<Avx2> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
            return Some(Avx2(()));
        }
        None
    }
}

impl Avx512 {
    /// The token, if this processor has the instructions.
    #[inline]
    fn detect() -> Option<Avx512> {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Some(Avx512(()));
        }
        None
    }
}

impl Vectors {
    /// The widest instructions of this processor.
    #[inline]
    pub(crate) fn best() -> Vectors {
        match Avx512::detect() {
            Some(token) => Vectors::Avx512(token),
            None => Avx2::detect().map_or(Vectors::Plain, Vectors::Avx2),
        }
    }

    /// All that this processor can run.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Vectors> {
        let (avx2, avx512) = (Avx2::detect().map(Vectors::Avx2), Avx512::detect().map(Vectors::Avx512));
        [Some(Vectors::Plain), avx2, avx512].into_iter().flatten().collect()
    }
}

/// Defines `fn $name(vectors, arguments)`, which runs `$body` compiled for the instructions of `vectors`. The body is plain code,
/// inlined into each variant, where the compiler vectorises it anew.
macro_rules! kernel {
    ($(#[$meta:meta])* fn $name:ident $(<$t:ident: $bound:ident, const $d:ident: usize>)?
     ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? = $body:ident) => {
        $(#[$meta])*
        #[inline]
        pub(super) fn $name $(<$t: $bound, const $d: usize>)? (
            vectors: $crate::vectors::Vectors, $($argument: $type),*
        ) $(-> $output)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi2,popcnt")]
            fn avx2 $(<$t: $bound, const $d: usize>)? ($($argument: $type),*) $(-> $output)? {
                $body($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512 $(<$t: $bound, const $d: usize>)? ($($argument: $type),*) $(-> $output)? {
                $body($($argument),*)
            }
            match vectors {
                // SAFETY: the token proves that the processor has these instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::vectors::Vectors::Avx512(_) => unsafe { avx512 $(::<$t, $d>)? ($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::vectors::Vectors::Avx2(_) => unsafe { avx2 $(::<$t, $d>)? ($($argument),*) },
                _ => $body($($argument),*),
            }
        }
    };
}
pub(crate) use kernel;

/// The lowest bit of each byte, the first byte's lowest.
#[inline(always)]
pub(crate) fn word_of(bytes: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (part, eight) in bytes.chunks_exact(8).enumerate() {
        let eight = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        // The product brings bit 8 n to bit 56 + n.
        word |= (eight.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * part);
    }
    word
}
