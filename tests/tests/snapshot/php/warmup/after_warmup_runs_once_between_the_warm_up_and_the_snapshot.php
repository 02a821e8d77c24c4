<?php
final class State {
    public static array $seen = [];
    public static ?string $token = null;
}
Howdah\after_warmup(function () {
    mark('after');
    State::$seen[] = 'reset';
    State::$token = null;
});
Howdah\after_warmup([new class {
    function also() {
        State::$seen[] = 'also';
    }
}, 'also']);
