<?php
final class Meeting {
    public static array $arrived = [];
    public static int $crowd = __CROWD__;
}
// Returns when the whole crowd has arrived; other requests run during each iteration's wait.
function meet(string $name): void {
    Meeting::$arrived[$name] = (Meeting::$arrived[$name] ?? 0) + 1;
    for ($turn = 0; Meeting::$arrived[$name] < Meeting::$crowd; $turn++) {
        if ($turn > 50000) {
            throw new LogicException("only " . Meeting::$arrived[$name] . " came to $name");
        }
        usleep(1000);
    }
}
// A short wait of varying length.
function pause(): void {
    usleep(random_int(1, 3000));
}
