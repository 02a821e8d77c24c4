<?php
if (!function_exists('profile_spends')) {
    function profile_spends(string $stop): string
    {
        do {
            profile_much();
            profile_little();
            clearstatcache();
        } while (!file_exists($stop));
        return 'spent';
    }

    function profile_much(): int
    {
        return profile_computes(800000);
    }

    function profile_little(): int
    {
        return profile_computes(100000);
    }

    function profile_computes(int $rounds): int
    {
        $sum = 0;
        for ($i = 0; $i < $rounds; $i++) {
            $sum = ($sum * 31 + $i) % 1000003;
        }
        return $sum;
    }
}
echo profile_spends(__DIR__ . '/stop');
