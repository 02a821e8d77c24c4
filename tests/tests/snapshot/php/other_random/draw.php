<?php
function draw(): array
{
    $libraries = [
        'libgnutls.so.30' => 'int gnutls_rnd(int level, void *data, size_t length);',
        'libgcrypt.so.20' => 'void gcry_randomize(void *data, size_t length, int level);'
            . ' void gcry_create_nonce(void *data, size_t length);'
            . ' const char *gcry_check_version(const char *wanted);',
        'libnss3.so' => 'int PK11_GenerateRandom(void *data, int length); int NSS_NoDB_Init(const char *directory);',
    ];
    // A library that is released is unloaded, together with its generator.
    static $kept = [];
    $drawn = [];
    foreach ($libraries as $name => $functions) {
        try {
            $library = $kept[$name] ??= FFI::cdef($functions, $name);
        } catch (FFI\Exception) {
            continue;
        }
        $kinds = match ($name) {
            'libgnutls.so.30' => [
                'nonce' => fn ($bytes) => $library->gnutls_rnd(0, $bytes, 16),
                'random' => fn ($bytes) => $library->gnutls_rnd(1, $bytes, 16),
                'key' => fn ($bytes) => $library->gnutls_rnd(2, $bytes, 16),
            ],
            'libgcrypt.so.20' => [
                'strong' => fn ($bytes) => [$library->gcry_check_version(null), $library->gcry_randomize($bytes, 16, 1)],
                'nonce' => fn ($bytes) => $library->gcry_create_nonce($bytes, 16),
                'very strong' => fn ($bytes) => $library->gcry_randomize($bytes, 16, 2),
            ],
            'libnss3.so' => [
                'random' => fn ($bytes) => [$library->NSS_NoDB_Init('.'), $library->PK11_GenerateRandom($bytes, 16)],
            ],
        };
        foreach ($kinds as $kind => $fill) {
            $bytes = FFI::new('unsigned char[16]');
            $fill($bytes);
            $drawn["$name $kind"] = bin2hex(FFI::string($bytes, 16));
        }
    }
    return $drawn;
}
draw();
