<?php
// Counts its visits for as long as its process keeps them: in worker mode all, in classic mode each for itself.
final class Kept
{
    public static int $visits = 0;
}
$respond = function () {
    header('Content-Type: text/html; charset=utf-8');
    echo '<p>visits: ', ++Kept::$visits, '</p>';
};
if (Howdah\mode() === 'worker') {
    while (frankenphp_handle_request($respond)) {
    }
} else {
    $respond();
}
